"""What measures are called in tables and sentences of a comparison."""

from __future__ import annotations

LABELS = {
    "zero/accuracy": "Zero-shot accuracy",
    "zero/surprisal": "Surprisal without context",
    "oracle/accuracy": "Oracle accuracy",
    "noise/accuracy": "Noise accuracy",
    "distractor/accuracy": "Distractor accuracy",
    "irrelevant/accuracy": "Irrelevant accuracy",
    "oracle/ncu": "NCU",
    "oracle/ncu_raw_mean": "Raw NCU, mean",
    "oracle/ncu_raw_median": "Raw NCU, median",
    "oracle/ncu_pooled": "NCU, pooled",
    "oracle/negative_transfer_rate": "Negative transfer",
    "adversarial/prior_dominance": "Prior dominance",
    "adversarial/prior_dominance_contrastive": "Prior dominance, contrastive",
    "adversarial/adherence": "Adherence",
    "adversarial/log_odds": "Log odds of the fabricated answer",
    "latency/oracle_p50_s": "Latency, s",
}


def label(measure: str) -> str:
    """`<condition>/<measure>` as a person calls it."""
    condition, _, name = measure.partition("/")
    words = {"ncu": "NCU", "em": "EM", "f1": "F1"}
    told = " ".join(words.get(word, word) for word in name.split("_"))
    return LABELS.get(measure) or f"{told[:1].upper()}{told[1:]}, {condition}"


# What each figure shows, for those who do not see it.
FIGURES = {
    "success_by_condition": "Accuracy of each system under each condition, with intervals",
    "ncu_distribution": "How NCU spreads over the items of each system",
    "prior_dominance": "Prior dominance and adherence of each system, by corpus",
    "negative_transfer": "Negative transfer of each system, by corpus",
    "scaling": "NCU, prior dominance and latency against the size of the model",
    "heat_map": "NCU and prior dominance, systems by corpora",
    "prior_and_context": "Prior knowledge against NCU, a point for each item",
    "precision_ladder": "NCU, accuracy and prior dominance against precision",
    "differences": "Differences between pairs of systems with their intervals",
    "sensitivity": "Ranks of the systems under other settings of the metric",
}
