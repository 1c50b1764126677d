import hydra
from ncu_exp.config import conf_dir, register, from_dictconfig

register()


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
def main(cfg):
    print(from_dictconfig(cfg))
