// What every system made of the item chosen.

const OPEN_SYSTEMS = 6; // more systems than these are folded, but for the one in the plot

function context(name, pieces) {
  const shown = pieces.map((piece) =>
    Array.isArray(piece) ? element("mark", text(piece[0])) : document.createTextNode(text(piece)),
  );
  const none = [element("span", "The runs' tables do not hold it.", { class: "faint" })];
  const all = group("div", shown.length ? shown : none, { class: "context" });
  return group("div", [element("h4", name), all]);
}

function token(logprob, id) {
  const bounded = Array.isArray(logprob);
  const most = bounded ? logprob[0] : logprob;
  const told = most === null ? "–" : most.toFixed(2).replace("-0.00", "0.00");
  const made = element("span", (bounded ? "≤ " : "") + told);
  made.className = bounded ? "token bounded" : "token";
  // The less likely, the stronger: nothing at 0, all of it at −8 nats.
  const share = most === null ? 0 : Math.round(65 * Math.min(1, -most / 8));
  made.style.background = `color-mix(in srgb, var(--miss) ${share}%, transparent)`;
  if (id !== undefined) made.title = `token ${id}`;
  return made;
}

const HEADS = [
  ["Condition", 10], ["Scored answer", 14], ["P per token", 10], ["Surprisal (nats)", 10],
  ["NCU", 8], ["Generated text", 18], ["EM", 4], ["Log-probabilities of the tokens", 26],
];

function tableRow([, condition, continuation, status, reason, scored, greedy, p, nats, ncu, em, ids, logprobs]) {
  const answer = element("td", text(scored) || "–");
  if (text(continuation) !== "true") answer.append(" ", element("small", `(${text(continuation)})`));
  const head = [element("th", text(condition), { scope: "row" }), answer];
  if (text(status) !== "ok") {
    const why = [text(status), text(reason)].filter(Boolean).join(": ");
    return group("tr", [...head, element("td", why, { class: "faint", colspan: HEADS.length - 2 })]);
  }
  const made = greedy === null ? "–" : text(greedy) || "(nothing)";
  const cells = [between(p), between(nats), between(ncu), made, number(em)];
  const tokens = logprobs.flatMap((logprob, k) => [token(logprob, ids[k]), " "]);
  return group("tr", [...head, ...cells.map((cell) => element("td", cell)), group("td", tokens)]);
}

function systemTable(i, system, open) {
  const rows = data.details[i].rows.filter((row) => row[0] === system);
  const summary = group("summary", [
    element("strong", data.systems[system]), " ", element("small", measures(i, system)),
  ]);
  const made = group("details", [summary], open ? { open: "" } : {});
  if (!rows.length) {
    made.append(element("p", "This system has no rows of this item.", { class: "faint" }));
    return made;
  }
  const heads = HEADS.map(([name, width]) =>
    element("th", name, { scope: "col", style: `width: ${width}%` }),
  );
  const table = group("table", [
    group("thead", [group("tr", heads)]), group("tbody", rows.map(tableRow)),
  ]);
  made.append(group("div", [table], { class: "wide" }));
  return made;
}

function answerLine(detail) {
  const line = group("p", ["Answer: ", element("strong", detail.answer)]);
  const more = detail.aliases.length - 10;
  if (detail.aliases.length)
    line.append(`; also accepted: ${detail.aliases.slice(0, 10).join(" · ")}`);
  if (more > 0) line.append(` and ${more} more`);
  if (detail.fabricated !== null)
    line.append("; in the adversarial context: ", element("strong", detail.fabricated));
  return line;
}

function showItem() {
  const detail = data.details[state.item];
  const place = `${data.corpora[data.corpus[state.item]]} · ${detail.id}`;
  const contexts = [context("Gold context", detail.original)];
  if (detail.perturbed !== null) contexts.push(context("Adversarial context", detail.perturbed));
  const others = [...data.systems.keys()].filter((system) => system !== state.system);
  const open = data.systems.length <= OPEN_SYSTEMS;
  places.item.replaceChildren(
    element("h3", detail.question),
    element("p", place, { class: "faint" }),
    answerLine(detail),
    group("div", contexts, { class: "side" }),
    element("p", "Replaced words are marked; long contexts are cut between the marks. The system of "
      + "the plot stands first. The stronger the colour of a token, the less likely it was.", { class: "faint" }),
    systemTable(state.item, state.system, true),
    ...others.map((system) => systemTable(state.item, system, open)),
  );
}
