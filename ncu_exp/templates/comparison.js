// The explorer of a comparison: what it draws from, what is chosen, and small things for the plot,
// the item and the list. Texts enter the page as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const places = Object.fromEntries(
  ["system", "corpus", "corpora", "scale", "plot", "drawn", "search", "found", "list", "shown", "item"].map(
    (id) => [id, document.getElementById(id)],
  ),
);
const state = { system: data.chosen, corpus: -1, scale: "linear", item: -1, active: -1 };

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  if (text !== "") made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function group(tag, children, attributes = {}) {
  const made = element(tag, "", attributes);
  made.append(...children);
  return made;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const text = (place) => (place === null ? null : data.texts[place]);
const count = (n, word = "item") => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const plain = (words) => words.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

function number(value) {
  if (value === null) return "–";
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(2);
  return String(value);
}

// A number, or the two that it lies between; without an upper one it has no end.
const between = (value) =>
  Array.isArray(value)
    ? `${number(value[0])} … ${value[1] === null ? "∞" : number(value[1])}`
    : number(value);

const inCorpus = (i) => state.corpus < 0 || data.corpus[i] === state.corpus;
const measures = (i, system = state.system) => {
  const [prior, ncu, em] = [data.prior[system][i], data.ncu[system][i], data.em[system][i]];
  const said = em === null ? "" : em ? " · text matches" : " · text does not match";
  return `P without context ${number(prior)} · NCU ${between(ncu)}${said}`;
};
