"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const space = "http://www.w3.org/2000/svg", height = 360, left = 62, bottom = 34;
const short = (n) => n >= 1e6 ? +(n / 1e6).toPrecision(3) + " M" : n >= 1e4 ? +(n / 1e3).toPrecision(3) + " k" : +n.toPrecision(3) + "";
const element = (name, attributes, text = "") => {
  const made = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
};

// Both axes are logarithmic, with round numbers at their lines.
function scale(key, from, to) {
  const values = data.points.map((p) => p[key] ?? 0).filter((v) => v > 0);
  let low = Math.log2(Math.min(...values)) - 0.15, high = Math.log2(Math.max(...values)) + 0.15;
  if (!values.length) [low, high] = [0, 1];
  const at = (v) => from + (to - from) * (Math.log2(v) - low) / (high - low);
  return { at, ticks: ticks(2 ** low, 2 ** high) };
}

// 1, 2 and 5 times powers of ten where the range is wide, otherwise equal steps of such a size.
function ticks(least, most) {
  const size = (v) => 10 ** Math.floor(Math.log10(v)), made = [];
  if (most > 8 * least) {
    for (let p = size(least); p <= most; p *= 10) made.push(p, 2 * p, 5 * p);
  } else {
    const quarter = (most - least) / 4, step = size(quarter) * [1, 2, 5, 10].find((m) => m * size(quarter) >= quarter);
    for (let n = Math.ceil(least / step); n * step <= most; n++) made.push(n * step);
  }
  return made.filter((v) => least <= v && v <= most);
}

function choose(index) {
  const p = data.points[index];
  $("point").textContent = `${p.name}: ${p.fps.toFixed(2)} frames/s at ${p.mhz} MHz (${p.clock}). ${p.limit}`;
  for (const marked of document.querySelectorAll("[data-point]")) marked.classList.toggle("chosen", +marked.dataset.point === index);
}

function draw() {
  const plot = $("plot"), width = plot.clientWidth || 600, [across, up] = [$("across").value, $("up").value];
  const x = scale(across, left, width - 14), y = scale(up, height - bottom, 12);
  plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
  plot.setAttribute("height", height);
  plot.replaceChildren();
  for (const tick of x.ticks.filter((_, k) => width > 600 || k % 2 === 0)) plot.append(element("line", { class: "grid", x1: x.at(tick), x2: x.at(tick), y1: 8, y2: height - bottom }), element("text", { x: x.at(tick), y: height - bottom + 15, "text-anchor": "middle" }, short(tick)));
  for (const tick of y.ticks) plot.append(element("line", { class: "grid", x1: left, x2: width - 8, y1: y.at(tick), y2: y.at(tick) }), element("text", { x: left - 6, y: y.at(tick) + 4, "text-anchor": "end" }, short(tick)));
  data.points.forEach((p, index) => {
    if (!(p[across] > 0 && p[up] > 0)) return;
    const kind = p.front ? "front" : p.fits ? "fits" : "misses";
    const dot = element("circle", { class: `dot ${kind}`, cx: x.at(p[across]), cy: y.at(p[up]), r: p.front ? 6 : 4.5, tabindex: p.front ? 0 : -1, "data-point": index });
    dot.append(element("title", {}, `${p.name}: ${p.fps.toFixed(2)} frames/s`));
    for (const event of ["click", "focus", "mouseenter"]) dot.addEventListener(event, () => choose(index));
    plot.append(dot);
  });
}

for (const [id, start] of [["across", data.axes[1][0]], ["up", "fps"]]) {
  for (const [key, label] of data.axes) $(id).append(new Option(label, key, false, key === start));
  $(id).addEventListener("change", draw);
}
for (const row of document.querySelectorAll("tr[data-point]")) row.addEventListener("click", () => choose(+row.dataset.point));
addEventListener("resize", draw);
draw();
if (data.points.length) choose(0);
