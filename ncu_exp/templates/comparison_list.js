// The list of items, its keys, and what the reader's choices set off.

const searched = data.details.map((d) => plain([d.question, d.answer, d.id].join("\n")));

function fillList() {
  const words = plain(places.search.value).split(/\s+/).filter(Boolean);
  const matches = (i) => inCorpus(i) && words.every((word) => searched[i].includes(word));
  const rows = [...data.details.keys()].filter(matches).map((i) => {
    const made = element("li", data.details[i].question, { role: "option", id: `row-${i}` });
    const corpus = data.corpora.length > 1 ? `${data.corpora[data.corpus[i]]} · ` : "";
    made.append(element("small", corpus + measures(i), { class: "faint" }));
    made.setAttribute("aria-selected", String(i === state.item));
    made.dataset.item = i;
    return made;
  });
  places.list.replaceChildren(...rows);
  places.found.textContent = `${count(rows.length)}${words.length ? " found" : ""}`;
  activate(rows.find((row) => Number(row.dataset.item) === state.item) ?? rows[0]);
}

function activate(row) {
  places.list.querySelector(".active")?.classList.remove("active");
  state.active = row ? Number(row.dataset.item) : -1;
  places.list.setAttribute("aria-activedescendant", row?.id ?? "");
  if (!row) return;
  row.classList.add("active");
  // Of the list alone: the page stays where it is.
  const { list } = places;
  const top = row.offsetTop - list.offsetTop;
  if (top < list.scrollTop) list.scrollTop = top;
  const below = top + row.offsetHeight - list.clientHeight;
  if (below > list.scrollTop) list.scrollTop = below;
}

function listKey(event) {
  const rows = [...places.list.children];
  const at = rows.findIndex((row) => row.classList.contains("active"));
  const last = rows.length - 1;
  const to = {
    ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8, Home: 0, End: last,
  }[event.key];
  if (to !== undefined) activate(rows[Math.min(Math.max(to, 0), last)]);
  else if ((event.key === "Enter" || event.key === " ") && state.active >= 0) choose(state.active);
  else return;
  event.preventDefault();
}

function searchKey(event) {
  if (event.key === "ArrowDown") places.list.focus();
  else if (event.key === "Enter" && state.active >= 0) choose(state.active);
  else return;
  event.preventDefault();
}

function choose(i) {
  state.item = i;
  showItem();
  places.shown.textContent = `Shown below: ${data.details[i].question}`;
  for (const row of places.list.children)
    row.setAttribute("aria-selected", String(Number(row.dataset.item) === i));
  activate(document.getElementById(`row-${i}`));
  draw();
  places.item.querySelector("h3").scrollIntoView({ block: "nearest" });
}

function fill(select, names, chosen) {
  select.append(...names.map(([name, value]) => element("option", name, { value })));
  select.value = String(chosen);
}

function refresh() {
  fillList();
  draw();
  if (state.item >= 0) showItem();
}

fill(places.system, data.systems.map((name, i) => [name, i]), state.system);
fill(places.corpus, [["all", -1], ...data.corpora.map((name, i) => [name, i])], state.corpus);
places.corpora.hidden = data.corpora.length < 2;
for (const name of ["system", "corpus"])
  places[name].addEventListener("change", (event) => {
    state[name] = Number(event.target.value);
    refresh();
  });
places.scale.addEventListener("change", (event) => {
  state.scale = event.target.value;
  draw();
});
places.search.addEventListener("input", fillList);
places.search.addEventListener("keydown", searchKey);
places.list.addEventListener("keydown", listKey);
places.list.addEventListener("click", (event) => {
  const row = event.target.closest("li");
  if (row) choose(Number(row.dataset.item));
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
refresh();
places.plot.on("plotly_click", (event) => {
  const i = event.points[0].customdata;
  if (i < data.details.length) choose(i);
});
