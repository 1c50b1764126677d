// A point per item, under the system chosen.

const LEAST = 1e-6; // less likely priors stand at the left end of a logarithmic axis

const DECADES = ["1e-6", "1e-5", "1e-4", "0.001", "0.01", "0.1", "1"];
const power = (told, k) =>
  (k ? "" : "≤ ") + told.replace(/1e-(.)/, (_, by) => `10<sup>−${by}</sup>`);

const KINDS = [
  { em: 1, name: "Generated text matches (EM)", colour: "--match", symbol: "circle" },
  { em: 0, name: "It does not match", colour: "--miss", symbol: "diamond" },
  { em: null, name: "No text", colour: "--none", symbol: "square" },
];

// Plotly reads tags and entities in its labels: a text is to be shown as it is.
const label = (words) => words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

function lines(words, width = 60) {
  const made = [""];
  for (const word of words.slice(0, 300).split(/\s+/)) {
    const last = made[made.length - 1];
    if (last && last.length + word.length >= width) made.push(word);
    else made[made.length - 1] = last ? `${last} ${word}` : word;
  }
  return made.map(label).join("<br>") + (words.length > 300 ? "…" : "");
}

const isDrawn = (i) =>
  inCorpus(i) && data.prior[state.system][i] !== null && data.ncu[state.system][i] !== null;

function drawnItems() {
  const all = data.systems.length ? [...data.corpus.keys()].filter(isDrawn) : [];
  const opens = data.details.length;
  return { large: all.filter((i) => i < opens), small: all.filter((i) => i >= opens) };
}

const across = (i) => Math.max(data.prior[state.system][i], state.scale === "log" ? LEAST : 0);
function up(i) {
  const ncu = data.ncu[state.system][i];
  return Array.isArray(ncu) ? (ncu[0] + ncu[1]) / 2 : ncu;
}
function reach(i) {
  const ncu = data.ncu[state.system][i];
  return Array.isArray(ncu) ? (ncu[1] - ncu[0]) / 2 : 0;
}

function points(items, kind, more) {
  const half = items.map(reach);
  return {
    type: "scatter",
    mode: "markers",
    x: items.map(across),
    y: items.map(up),
    error_y: { array: half, visible: half.some((h) => h > 0), thickness: 1, width: 2 },
    customdata: items,
    ...more,
    marker: { color: colour(kind.colour), symbol: kind.symbol, ...more.marker },
  };
}

function traces() {
  const { large, small } = drawnItems();
  const made = [];
  for (const kind of KINDS) {
    const of = (items) => items.filter((i) => data.em[state.system][i] === kind.em);
    const [faint, full] = [of(small), of(large)];
    const common = { legendgroup: kind.name, name: `${kind.name}: ${full.length + faint.length}` };
    const outline = { color: colour("--paper"), width: 1 };
    if (faint.length) {
      const marker = { size: 4, opacity: 0.45 };
      made.push(points(faint, kind, { ...common, hoverinfo: "skip", marker, showlegend: !full.length }));
    }
    if (full.length) {
      const shown = full.map((i) => `${lines(data.details[i].question)}<br>${label(measures(i))}`);
      const marker = { size: 10, opacity: 0.8, line: outline };
      made.push(points(full, kind, { ...common, text: shown, hovertemplate: "%{text}<extra></extra>", marker }));
    }
  }
  if (state.item >= 0 && isDrawn(state.item)) {
    const marker = { size: 20, color: colour("--ink"), symbol: "circle-open", line: { width: 3 } };
    made.push(points([state.item], KINDS[0], { hoverinfo: "skip", showlegend: false, marker }));
  }
  return made;
}

function layout() {
  const [ink, line] = [colour("--ink"), colour("--line")];
  const axis = { gridcolor: line, linecolor: line, zeroline: false, automargin: true };
  const log = state.scale === "log";
  const narrow = places.plot.clientWidth < 600;
  return {
    font: { color: ink, family: "system-ui, sans-serif", size: 13 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 10, r: 10, t: 10, b: 10 },
    hovermode: "closest",
    // Dragging zooms with a mouse; on a touch screen it scrolls the page.
    dragmode: window.matchMedia("(pointer: fine)").matches ? "zoom" : false,
    uirevision: state.scale,
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--faint"), activecolor: ink },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", itemsizing: "constant" },
    hoverlabel: { align: "left", bgcolor: colour("--shade"), bordercolor: line, font: { color: ink } },
    xaxis: {
      ...axis,
      title: { text: `Probability per token${narrow ? "<br>" : " "}without context, exp(−S_prior)` },
      type: state.scale,
      range: log ? [Math.log10(LEAST) - 0.2, 0.15] : [-0.03, 1.03],
      ...(log ? { tickvals: DECADES.map(Number), ticktext: DECADES.map(power) } : {}),
    },
    yaxis: { ...axis, title: { text: "NCU" }, range: [-0.05, 1.05] },
    shapes: [{
      type: "rect", layer: "below", xref: "paper", x0: 0, x1: 1, y0: 0, y1: data.near_zero,
      fillcolor: ink, opacity: 0.08, line: { width: 0 },
    }],
    annotations: [{
      text: "<i>right all the same: recited, not read</i>", showarrow: false, xanchor: "right",
      yanchor: "bottom", xref: "paper", x: 1, y: data.near_zero, font: { color: colour("--faint") },
    }],
  };
}

// Plotly's own buttons would offer to send the chart to its makers, among others.
const CONFIG = {
  responsive: true,
  displaylogo: false,
  showSendToCloud: false,
  plotlyServerURL: "",
  modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
};

function draw() {
  const { large, small } = drawnItems();
  const shown = large.length + small.length;
  const asked = [...data.corpus.keys()].filter(inCorpus).length;
  const told = [`${data.systems[state.system] ?? "No system"}: ${count(shown)} drawn.`];
  if (shown < asked)
    told.push(`${count(asked - shown)} without a point: the probability without context is missing `
      + "or known within bounds only, or the NCU is missing.");
  if ([...large, ...small].some((i) => reach(i) > 0))
    told.push("Bars reach over what a bounded NCU may be.");
  places.drawn.textContent = told.join(" ");
  Plotly.react(places.plot, traces(), layout(), CONFIG);
}
