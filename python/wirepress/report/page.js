// SPDX-License-Identifier: Apache-2.0
// Sorts and filters tables, draws the figures, and keeps both in the theme. Needs no network.
"use strict";
(() => {
const all = (what, where = document) => [...where.querySelectorAll(what)];
const root = document.documentElement;
const PRINTED_ROWS = 60, PRINTED_WIDTH = 690, NARROW = 560;
const PINNED = 0.4;  // of a table's place, that its first column may keep
const TOOLBAR = 24;  // pixels above a plot for its buttons, which would cover what is drawn there

// ---- light and dark ------------------------------------------------------------------------

const system = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme");
let chosen = null;
try { chosen = localStorage.getItem("wirepress-theme"); } catch { /* not kept */ }

function applyTheme(theme = chosen ?? (system.matches ? "dark" : "light")) {
  root.dataset.theme = theme;
  button.textContent = theme === "dark" ? "light" : "dark";
}
button.addEventListener("click", () => {
  chosen = root.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("wirepress-theme", chosen); } catch { /* not kept */ }
  applyTheme();
  redraw();
});
system.addEventListener("change", () => { applyTheme(); redraw(); });
applyTheme();

// ---- tables --------------------------------------------------------------------------------

const UNITS = {
  k: 1e3, M: 1e6, G: 1e9, T: 1e12, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, KiB: 1024, MiB: 1048576,
  GiB: 1073741824, "B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "Mb/s": 1.25e5, "Gb/s": 1.25e8,
  s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9, "%": 0.01, x: 1, "": 1,
};
const COMPARE = {
  ">": (a, b) => a > b, "<": (a, b) => a < b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b,
  "=": (a, b) => Math.abs(a - b) <= 5e-3 * Math.abs(b),
};

function quantity(text) {
  const found = /^([-+]?[\d.]+(?:e[-+]?\d+)?)\s*([A-Za-z%/]*)$/.exec(text);
  return found && found[2] in UNITS ? Number(found[1]) * UNITS[found[2]] : NaN;
}

// A row is kept if it has all words; "name>2" is about the number in a column of that name.
function conditions(text, names) {
  return text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const found = /^(.+?)(>=|<=|>|<|=)(.+)$/.exec(word);
    const column = found ? names.findIndex((name) => name.startsWith(found[1].toLowerCase())) : -1;
    const value = found ? quantity(found[3]) : NaN;
    if (column >= 0 && !Number.isNaN(value)) {
      return (row) => row.cells[column].dataset.v !== undefined
        && COMPARE[found[2]](Number(row.cells[column].dataset.v), value);
    }
    return (row) => row.textContent.toLowerCase().includes(word.toLowerCase());
  });
}

function makeTable(box) {
  const body = box.querySelector("tbody"), rows = [...body.rows], heads = all("th", box);
  const names = heads.map((head) => head.textContent.trim().toLowerCase());
  const search = box.querySelector(".search"), picks = all(".pick", box);
  const count = box.querySelector(".count");

  function filter() {
    const wanted = search ? conditions(search.value, names) : [];
    for (const pick of picks) {
      if (pick.selectedIndex > 0) {
        wanted.push((row) => row.cells[pick.dataset.column].textContent === pick.value);
      }
    }
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = !wanted.every((fits) => fits(row));
      row.classList.toggle("beyond", !row.hidden && ++shown > PRINTED_ROWS);
    }
    if (count) {
      const rest = shown > PRINTED_ROWS ? `, ${PRINTED_ROWS} when printed` : "";
      count.classList.toggle("part", shown < rows.length || shown > PRINTED_ROWS);
      count.textContent = (shown < rows.length ? `${shown} of ` : "") + `${rows.length} rows${rest}`;
    }
  }
  function sort(i) {
    const up = heads[i].getAttribute("aria-sort") === "descending"
      || (heads[i].getAttribute("aria-sort") === "none" && !heads[i].classList.contains("n"));
    heads.forEach((head, j) => head.setAttribute(
      "aria-sort", i !== j ? "none" : up ? "ascending" : "descending"));
    const key = (row) => {
      const cell = row.cells[i];
      return heads[i].classList.contains("n") ? Number(cell.dataset.v ?? NaN) : cell.textContent;
    };
    const order = (a, b) => {
      const x = key(a), y = key(b);
      if (typeof x === "string") return (up ? 1 : -1) * x.localeCompare(y, "en", {numeric: true});
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return (up ? 1 : -1) * (x - y);
    };
    body.append(...[...rows].sort(order));  // from the first order: equal rows keep it
    filter();
  }
  heads.forEach((head, i) => head.firstElementChild.addEventListener("click", () => sort(i)));
  body.addEventListener("click", ({target}) => {  // long texts show two lines until pressed
    if (String(getSelection())) return;
    target.closest("td.long, .over td.middle")?.parentElement.classList.toggle("open");
  });
  search?.addEventListener("input", filter);
  for (const pick of picks) {
    pick.addEventListener("change", () => {
      filter();
      if (pick.selectedIndex > 0) spread(box, pick.dataset.name, pick.value);
    });
  }
  box.pick = (name, value) => {
    for (const pick of picks) {
      if (pick.dataset.name === name && [...pick.options].some((o) => o.value === value)) {
        pick.value = value;
        filter();
      }
    }
  };
  filter();
}

// Which tables are wider than their place: their rows take one line, and their first column stays.
function fit() {
  const boxes = all(".scroll");
  for (const box of boxes) box.classList.remove("over", "pinned");
  const wide = boxes.filter((box) => box.scrollWidth > box.clientWidth + 1);
  for (const box of wide) box.classList.add("over");
  for (const box of wide) {
    const first = box.querySelector("th").getBoundingClientRect().width;
    box.classList.toggle("pinned", first < PINNED * box.clientWidth);
  }
}

// What was chosen in one part of a section holds for its others.
function spread(from, name, value) {
  for (const part of all(".table, .plot", from.closest("section"))) {
    if (part !== from) part.pick?.(name, value);
  }
}

// ---- plots ---------------------------------------------------------------------------------

function colour(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }

const PREFIXES = {"-9": "n", "-6": "µ", "-3": "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"};
const ROOM = {x: 46, y: 24};  // pixels from tick to tick

function labels(values) {
  const plain = values.every((value) => value >= 0.99e-4 && value < 9.99e3);
  return values.map((value) => {
    const third = plain ? 0 : 3 * Math.floor(Math.log10(value * 1.000001) / 3);
    return third in PREFIXES ? Number((value / 10 ** third).toPrecision(6)) + PREFIXES[third]
                             : value.toExponential();
  });
}

// Of a logarithmic axis from 10^low to 10^high: 1, 2 and 5 of each decade, or powers of ten, or
// even steps within a decade. plotly's own between two powers have one digit: "2, 5, 2, 5".
function logTicks(low, high, pixels, room) {
  const decade = pixels / (high - low), values = [];
  const within = (value) => value >= 10 ** low * (1 - 1e-9) && value <= 10 ** high * (1 + 1e-9);
  if (decade * Math.log10(2) >= room || high - low < 1) {
    for (let e = Math.floor(low); e <= high; ++e) {
      for (const digit of [1, 2, 5]) values.push(Number(`${digit}e${e}`));
    }
  } else {
    const by = Math.ceil(room / decade);
    for (let e = by * Math.ceil(low / by); e <= high; e += by) values.push(Number(`1e${e}`));
  }
  let shown = values.filter(within);
  if (shown.length < 3 && high - low < 1) {
    const least = 10 ** high * Math.LN10 * room / decade, power = 10 ** Math.floor(Math.log10(least));
    const step = power * [1, 2, 5, 10].find((digit) => digit * power >= least);
    shown = [];
    for (let i = Math.ceil(10 ** low / step); within(i * step); ++i) shown.push(i * step);
  }
  return {tickvals: shown, ticktext: labels(shown)};
}

// Where the marks of an axis begin and end, as exponents, with plotly's margin.
function exponents(data, side) {
  let low = Infinity, high = -Infinity;
  for (const trace of data) {
    for (const value of trace[side] ?? []) {
      if (!(value > 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low > high) return null;
  [low, high] = [Math.log10(low), Math.log10(high)];
  const margin = Math.max(0.06 * (high - low), low === high ? 0.5 : 0);
  return [low - margin, high + margin];
}

function setLogTicks(layout, data, width, height) {
  for (const [side, pixels] of [["x", width], ["y", height]]) {
    const axis = layout[`${side}axis`];
    if (axis?.type !== "log" || axis.tickvals) continue;
    const range = exponents(data, side);
    if (range) Object.assign(axis, logTicks(...range, pixels, ROOM[side]));
  }
}

// After the reader zoomed.
function renewLogTicks(canvas, figure, changed) {
  const renewed = {};
  for (const side of ["x", "y"]) {
    const name = `${side}axis`, axis = canvas._fullLayout[name];
    const moved = Object.keys(changed).some((key) => key.startsWith(`${name}.`) && /range/.test(key));
    if (!moved || axis.type !== "log" || figure.layout[name].tickvals) continue;
    const [low, high] = [...axis.range].sort((a, b) => a - b);
    const ticks = logTicks(low, high, axis._length, ROOM[side]);
    renewed[`${name}.tickvals`] = ticks.tickvals;
    renewed[`${name}.ticktext`] = ticks.ticktext;
  }
  if (Object.keys(renewed).length) Plotly.relayout(canvas, renewed);
}

function themed(figure, away, width) {
  const ink = colour("--ink"), soft = colour("--soft"), line = colour("--line");
  const narrow = width < NARROW, above = narrow || printing ? 0 : TOOLBAR;
  const axis = {
    gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true, color: soft,
    title: {font: {color: soft, size: 12}, standoff: 8}, tickfont: {size: narrow ? 10 : 12},
  };
  const template = {layout: {
    font: {family: getComputedStyle(document.body).fontFamily, color: ink, size: 12},
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", xaxis: axis, yaxis: axis,
    margin: {l: narrow ? 44 : 60, r: narrow ? 8 : 20, t: 12 + above, b: 44},
    hoverlabel: {bgcolor: colour("--paper"), bordercolor: soft, font: {color: ink}, align: "left",
                 namelength: 40},
    hovermode: "closest",
    modebar: {bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: colour("--accent")},
  }};
  const layout = structuredClone(figure.layout);
  layout.template = template;
  layout.height = (layout.height ?? (narrow ? 320 : 380)) + above;
  layout.showlegend = false;  // legend() wraps, and is as large as a finger
  layout.width = width;
  const data = figure.data.map((trace) => ({
    ...trace, visible: !away.has(trace.name),
    ...(trace.type === "heatmap" && {colorscale: [[0, colour("--back")], [1, colour("--accent")]]}),
  }));
  setLogTicks(layout, data.filter((trace) => trace.visible), width - 90, layout.height - above - 60);
  return [data, layout];
}

// Names are escaped for plotly.
function read(name) {
  return name.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

// What is pressed away stays so when another view is chosen.
function legend(plot, figure) {
  const names = figure.data.map((trace) => trace.name).filter((name) => name !== undefined);
  const keys = names.length < 2 ? [] : figure.data.map((trace) => {
    const key = document.createElement("button"), mark = document.createElement("i");
    mark.style.background = trace.marker?.color ?? trace.line?.color;
    key.type = "button";
    key.append(mark, read(trace.name));
    key.setAttribute("aria-pressed", String(!plot.away.has(trace.name)));
    key.addEventListener("click", () => {
      plot.away.delete(trace.name) || plot.away.add(trace.name);
      draw(plot);
    });
    return key;
  });
  plot.querySelector(".legend").replaceChildren(...keys);
}

let printing = false;
function draw(plot) {
  const canvas = plot.querySelector(".canvas"), figure = plot.figure();
  plot.away ??= new Set();
  legend(plot, figure);
  for (const label of all("label", plot)) label.dataset.chosen = label.querySelector("select").value;
  const width = printing ? PRINTED_WIDTH : canvas.clientWidth;
  const [data, layout] = themed(figure, plot.away, width);
  const made = Plotly.react(canvas, data, layout, {
    displaylogo: false, displayModeBar: width < NARROW ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: {format: "svg"},
    scrollZoom: false,
  });
  if (!plot.listens) {
    plot.listens = true;
    canvas.on("plotly_relayout", (changed) => renewLogTicks(canvas, plot.figure(), changed));
  }
  return made;
}

function makeViews(plot, figures) {
  const view = plot.querySelector(".view");
  plot.figure = () => figures[view ? view.selectedIndex : 0];
  view?.addEventListener("change", () => {
    draw(plot);
    spread(plot, plot.dataset.facet, view.value);
  });
  plot.pick = (name, value) => {
    if (view && name === plot.dataset.facet && [...view.options].some((o) => o.value === value)) {
      view.value = value;
      if (window.Plotly) draw(plot);
    }
  };
}

const TONES = ["#4c8dd6", "#e39a26", "#35a57c", "#c9577f", "#8f76cf", "#41b3c9", "#a6823c", "#7f9a3a",
               "#d0654a", "#8b929c"];

function makeExplorer(plot, {columns, rows}) {
  const axes = all(".axis", plot), names = columns.map(([name]) => name);
  // the options of a choice are escaped for reading only: the value is the name itself
  const place = (i) => names.indexOf(axes[i].value);
  plot.figure = () => {
    const [x, y, tone] = [place(0), place(1), place(2)];
    const groups = new Map();
    for (const row of rows) {
      const name = tone < 0 ? "all" : String(row[tone] || "none");
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(row);
    }
    const wide = (i) => {
      const seen = rows.map((row) => row[i]).filter((v) => typeof v === "number");
      const least = Math.min(...seen), most = Math.max(...seen);
      return columns[i][1] !== null && least > 0 && most > 50 * least ? "log" : undefined;
    };
    const data = [...groups].map(([name, group], i) => ({
      type: "scatter", mode: "markers", name, x: group.map((row) => row[x]), y: group.map((row) => row[y]),
      marker: {size: 8, color: TONES[i % TONES.length], symbol: Math.floor(i / TONES.length)},
      text: group.map((row) => row.filter((cell) => typeof cell === "string").join(", ")),
      hovertemplate: "%{text}<br>%{x}: %{y:.4g}",
    }));
    const safe = (name) => name.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    // Names that lie across are written downwards where they have no room.
    const longest = columns[x][1] === null ? Math.max(...rows.map((row) => String(row[x]).length)) : 0;
    const height = longest > 8 ? 320 + Math.min(7 * longest, 200) : undefined;
    return {data, layout: {height, xaxis: {title: {text: safe(axes[0].value)}, type: wide(x)},
                           yaxis: {title: {text: safe(axes[1].value)}, type: wide(y)}}};
  };
  for (const choice of axes) choice.addEventListener("change", () => draw(plot));
}

function redraw() {
  fit();
  return window.Plotly ? Promise.all(all(".plot").map(draw)) : Promise.resolve();
}

async function library() {
  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent.trim()),
                                 (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

function addResize() {
  let width = innerWidth, timer = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;  // a phone's bars come and go
    width = innerWidth;
    clearTimeout(timer);
    timer = setTimeout(redraw, 100);
  });
}

async function start() {
  all(".table").forEach(makeTable);
  fit();
  const plots = all(".plot");
  for (const plot of plots) {
    const data = JSON.parse(plot.querySelector("script").textContent);
    plot.classList.contains("explorer") ? makeExplorer(plot, data) : makeViews(plot, data);
  }
  addResize();
  if (!plots.length) return;
  try {
    await library();
  } catch {
    for (const plot of plots) {
      plot.querySelector(".canvas").textContent = "This browser is too old for the plots.";
    }
    return;
  }
  await redraw();
  addEventListener("beforeprint", () => { printing = true; applyTheme("light"); redraw(); });
  addEventListener("afterprint", () => { printing = false; applyTheme(); redraw(); });
}
start().finally(() => { root.dataset.ready = "yes"; });
})();
