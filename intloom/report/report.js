"use strict";
const run = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const number = (n) => Math.round(n).toLocaleString("en-US");
const short = (n) => n >= 1e9 ? (n / 1e9).toFixed(2) + " G" : n >= 1e6 ? (n / 1e6).toFixed(2) + " M" : n >= 1e4 ? (n / 1e3).toFixed(1) + " k" : number(n);
const bytes = (n) => short(n) + (n >= 1e4 ? "B" : " B");
const percent = (x) => (100 * x).toFixed(1) + " %";
// Every value in an html`...` template is escaped, except the results of other such templates. Only `show` writes HTML.
class Html { constructor(text) { this.text = text; } }
const escape = (s) => String(s).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const piece = (v) => Array.isArray(v) ? v.map(piece).join("") : v instanceof Html ? v.text : escape(v);
const html = (strings, ...values) => new Html(String.raw({ raw: strings }, ...values.map(piece)));
const show = (element, content) => { element.innerHTML = content.text; };
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const labels = { work: "busy", partial: "array partly filled", no_instruction: "no instruction", wait: "wait for another unit", memory: "wait for memory", weights: "wait for weights", accumulators: "wait for accumulators", other: "start and end" };
const peak = run.params.rows * run.params.cols;
let chosen = -1;

// Cycles of a unit: busy, stalled by cause, remaining.
function parts(busy, stalls, total) {
  const list = [["work", busy], ...Object.entries(stalls).map(([k, v]) => [k.toLowerCase(), v])];
  const rest = total - list.reduce((sum, [, v]) => sum + v, 0);
  return [...list, ["other", Math.max(0, rest)]].filter(([, v]) => v > 0);
}
// The main unit of a layer, and its cycles within the layer.
const mainUnit = (l) => l.macs ? "MAC" : "VEC";
function unitParts(l) {
  const unit = mainUnit(l) + "_STALL_";
  const stalls = Object.entries(l.stalls).filter(([k]) => k.startsWith(unit)).map(([k, v]) => [k.slice(unit.length), v]);
  return parts(l.busy[mainUnit(l)] ?? 0, Object.fromEntries(stalls), l.cycles);
}
const bars = (list, total) => list.map(([k, v]) => html`<i style="width:${100 * v / total}%;background:var(--${k})" title="${labels[k] || k}: ${number(v)} cycles, ${percent(v / total)}"></i>`);

function drawUnits() {
  if (!$("units")) return;
  const causes = new Set(["work", "partial"]);
  const rows = run.units.map((u) => {
    let list = parts(u.busy, u.stalls, run.cycles), text = `${percent(u.busy / run.cycles)} busy`;
    if (u.name === "mac") {
      // Busy cycles of the array are useful, or lost in rows and columns without a channel.
      const ideal = Math.min(u.busy, run.macs / peak);
      list = [["work", ideal], ["partial", u.busy - ideal], ...list.slice(1)].filter(([, v]) => v > 0);
      text = `${percent(ideal / run.cycles)} useful`;
    }
    list.forEach(([k]) => causes.add(k));
    return html`<div class="unit"><b>${u.name}</b><div class="bar">${bars(list, run.cycles)}</div><span class="num">${text}</span></div>`;
  });
  const legend = [...causes].map((k) => html`<span><i style="background:var(--${k})"></i>${labels[k] || k}</span>`);
  show($("units"), html`${rows}<div class="legend">${legend}</div>`);
}

function drawSkyline() {
  if (!$("skyline")) return;
  const width = $("skyline").clientWidth - 46, height = 180, total = run.layers.reduce((s, l) => s + l.cycles, 0) || 1;
  let x = 0;
  const grid = [0, 0.5, 1].map((g) => html`<line class="grid" x1="0" x2="${width}" y1="${height * (1 - g)}" y2="${height * (1 - g)}"/><text x="${width + 6}" y="${height * (1 - g) + 4}">${100 * g} %</text>`);
  const layers = run.layers.map((l, i) => {
    const w = width * l.cycles / total, h = height * Math.min(1, l.mac_use), at = x;
    x += w;
    const gap = w > 3 ? 1 : 0;
    return html`<g class="layer" data-layer="${i}"><title>${l.name}: ${number(l.cycles)} cycles, utilization ${percent(l.mac_use)}</title><rect class="lost" x="${at}" y="0" width="${Math.max(0.2, w - gap)}" height="${height}"/><rect class="done" x="${at}" y="${height - h}" width="${Math.max(0.2, w - gap)}" height="${h}"/></g>`;
  });
  // Chains are few; each has a line from its first layer to its last.
  const starts = [0];
  run.layers.forEach((l) => starts.push(starts[starts.length - 1] + width * l.cycles / total));
  const lines = run.chains.filter((c) => c.layers.length > 1).map((c) => {
    const last = c.layers[c.layers.length - 1], from = starts[c.layers[0]], to = starts[last + 1];
    return html`<rect class="chain" x="${from}" y="${height + 3}" width="${Math.max(1, to - from - 2)}" height="3"><title>chain of ${c.layers.length} layers, ${run.layers[c.layers[0]].name} to ${run.layers[last].name}: ${bytes(c.dram_bytes)} of memory traffic</title></rect>`;
  });
  show($("skyline"), html`<svg viewBox="0 -6 ${width + 46} ${height + 34}">${grid}${layers}${lines}${axis(width, height + 22, total)}</svg>`);
}
function axis(width, y, total) {
  return ticks(width).map((f) => html`<text x="${f * width}" y="${y}" text-anchor="${f === 0 ? "start" : f === 1 ? "end" : "middle"}">${short(f * total)} cycles</text>`);
}

// Positions of axis labels, as fractions of the width.
function ticks(width) { return width < 500 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]; }

const flows = [["weights", "weights read"], ["read", "tensors read"], ["written", "tensors written"]];
function drawTraffic() {
  const width = $("traffic").clientWidth, height = 110, most = Math.max(1, ...run.layers.map((l) => l.dram_bytes)), step = width / run.layers.length;
  const columns = run.layers.map((l, i) => {
    let y = height;
    const stack = flows.map(([k]) => {
      const h = height * l.traffic[k] / most;
      y -= h;
      return html`<rect style="fill:var(--flow-${k})" x="${i * step}" y="${y}" width="${Math.max(0.5, Math.min(40, step - 1.5))}" height="${h}"/>`;
    });
    const text = flows.map(([k, name]) => `${name} ${number(l.traffic[k])}`).join(", ");
    return html`<g class="layer" data-layer="${i}"><title>${l.name}: ${text} bytes</title><rect x="${i * step}" y="0" width="${step}" height="${height}" fill="transparent"/>${stack}</g>`;
  });
  const legend = flows.map(([k, name]) => html`<span><i style="background:var(--flow-${k})"></i>${name}: ${bytes(run.layers.reduce((s, l) => s + l.traffic[k], 0))}</span>`);
  show($("traffic"), html`<svg viewBox="0 -6 ${width} ${height + 10}"><line class="grid" x1="0" x2="${width}" y1="${height}" y2="${height}"/>${columns}</svg><div class="legend">${legend}<span>highest column: ${bytes(most)}</span></div>`);
}

// Comparison of a layer: by its own tensor, within the layer that it is fused into, or none.
function comparison(l) {
  if (l.compared_bytes) return l.mismatches ? ["differs", `${number(l.mismatches)} of ${number(l.compared_bytes)} bytes differ`] : ["equal", `${number(l.compared_bytes)} bytes equal`];
  return l.compared_in ? ["inside", `compared within ${l.compared_in}`] : ["missing", "not compared"];
}
function drawComparison() {
  const counts = {};
  const cells = run.layers.map((l, i) => {
    const [kind, text] = comparison(l);
    counts[kind] = (counts[kind] ?? 0) + 1;
    return html`<i class="${kind}" data-layer="${i}" title="${l.name}: ${text}"></i>`;
  });
  const names = { equal: "equal", inside: "equal within the layer that they are fused into", differs: "different", missing: "not compared" };
  const legend = Object.keys(names).filter((k) => counts[k]).map((k) => html`<span><i class="${k}"></i>${counts[k]} ${counts[k] === 1 ? "layer" : "layers"} ${names[k]}</span>`);
  show($("comparison"), html`<div class="cells">${cells}</div><div class="legend">${legend}</div>`);
}

const columns = [
  ["#", (l) => l.index, (l) => l.index, true],
  ["layer", (l) => l.name, (l) => html`<button type="button">${l.name}</button>`, false],
  ["kind", (l) => l.op, (l) => html`<span class="op">${l.op}</span>`, false],
  ["MACs", (l) => l.macs + l.vector_macs, (l) => l.macs + l.vector_macs ? short(l.macs + l.vector_macs) : "", true, (l) => !(l.macs + l.vector_macs)],
  ["cycles", (l) => l.cycles, (l) => l.cycles ? number(l.cycles) : html`<span class="dim">–</span>`, true, (l) => !l.cycles],
  ["ideal", (l) => l.macs / peak, (l) => l.macs ? number(l.macs / peak) : "", true, (l) => !l.macs],
  ["predicted", (l) => l.predicted_cycles, (l) => l.predicted_cycles ? number(l.predicted_cycles) : "", true, (l) => !l.predicted_cycles],
  ["utilization", (l) => l.mac_use, (l) => l.macs && l.cycles ? html`<span class="meter"><i style="width:${100 * Math.min(1, l.mac_use)}%"></i></span>${percent(l.mac_use)}` : "", false, (l) => !l.macs || !l.cycles],
  ["unit cycles", (l) => l.cycles - (l.busy[mainUnit(l)] ?? 0), (l) => l.cycles ? html`<span class="stack">${bars(unitParts(l), l.cycles)}</span>` : "", false, (l) => !l.cycles],
  ["memory B", (l) => l.dram_bytes, (l) => l.dram_bytes ? short(l.dram_bytes) : "", true, (l) => !l.dram_bytes],
  ["comparison", (l) => ["missing", "inside", "equal", "differs"].indexOf(comparison(l)[0]), (l) => ({
    equal: html`<span class="goodtext">✓ equal</span>`, differs: html`<span class="badtext">✗ ${number(l.mismatches)} differ</span>`,
    inside: html`<span class="goodtext" title="${comparison(l)[1]}">✓ fused</span>`, missing: html`<span class="dim">–</span>` })[comparison(l)[0]], false],
  ["instructions", (l) => l.instructions, (l) => l.instructions ? html`<a href="#layer-${l.index}">${number(l.instructions)} ↓</a>` : html`<span class="dim" title="fused into another layer, or no instruction needed">none</span>`, true, (l) => !l.instructions],
];
let order = 0, up = true;
function drawTable() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = run.layers.filter((l) => words.every((w) => `${l.name} ${l.op} ${l.origin.join(" ")}`.toLowerCase().includes(w)));
  const key = columns[order][1], blank = columns[order][4];
  // Blank cells are last in both directions.
  rows.sort((a, b) => blank && blank(a) !== blank(b) ? (blank(a) ? 1 : -1) : (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.index - b.index) * (up ? 1 : -1));
  const head = columns.map(([n, , , right], i) => html`<th data-column="${i}" aria-sort="${i === order ? (up ? "ascending" : "descending") : "none"}" class="${right ? "num" : ""}${i === order ? " sorted" + (up ? " up" : "") : ""}"><button type="button">${n}</button></th>`);
  show($("layers").tHead, html`<tr>${head}</tr>`);
  const cells = (l) => columns.map(([n, , cell, right]) => html`<td class="${right ? "num" : n === "layer" ? "name" : ""}">${cell(l)}</td>`);
  show($("layers").tBodies[0], html`${rows.map((l) => html`<tr data-layer="${l.index}" class="${l.index === chosen ? "chosen" : ""}" title="${l.origin.join(", ")}">${cells(l)}</tr>`)}`);
  $("count").textContent = `${rows.length} of ${run.layers.length}`;
}

function choose(index, scroll) {
  chosen = index;
  const layer = run.layers[index];
  mark();
  $("listing-name").textContent = layer.name;
  const lines = run.timeline.map((t, i) => [t, i]).filter(([t]) => t[1] === index);
  show($("listing"), html`${lines.map(([t, i], line) => html`${line ? "\n" : ""}<span class="i">${String(i).padStart(6)} tile ${String(t[2]).padStart(3)}${t[3] === null ? "" : ` @${String(t[3]).padStart(9)}`}</span>  <span class="${run.unit_names[t[0]] || ""}">${t[5]}</span>`)}`);
  const count = lines.length;
  $("listing-count").textContent = count ? `${number(count)} ${count === 1 ? "line" : "lines"}` : "none: fused into another layer, or no instruction needed";
  if (scroll) document.querySelector(`#layers tr[data-layer="${index}"]`)?.scrollIntoView({ block: "nearest" });
  drawTimeline(); drawLocal();
}

// An extent lasts from the start of the instruction that writes it to the start of the one after its last read.
const cycleOf = (index) => run.timeline[Math.min(index, run.timeline.length - 1)]?.[3] ?? run.cycles * index / Math.max(1, run.timeline.length);
const hue = (layer) => `hsl(${Math.ceil(layer * 137.508) % 360} 55% 55%)`;
function drawLocal() {
  const canvas = $("local");
  if (!canvas) return;
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, heights = [130, 70];
  canvas.width = width * ratio; canvas.height = 230 * ratio;
  const pen = canvas.getContext("2d"), scale = width / run.cycles;
  pen.scale(ratio, ratio);
  pen.font = "11px system-ui, sans-serif";
  let top = 14;
  run.local_memory.forEach((memory, m) => {
    pen.fillStyle = color("ink"); pen.fillText(`${memory.name}, ${number(memory.words * run.params.rows / 1024)} KiB`, 0, top - 3);
    pen.fillStyle = color("track"); pen.fillRect(0, top, width, heights[m]);
    for (const [start, stop, first, last] of memory.extents) {
      const layer = run.timeline[first][1], x = cycleOf(first) * scale, rows = heights[m] / memory.words;
      pen.fillStyle = layer === chosen ? color("accent") : hue(layer);
      pen.fillRect(x, top + heights[m] - stop * rows, Math.max(0.5, (last >= run.timeline.length ? run.cycles : cycleOf(last)) * scale - x), Math.max(0.5, (stop - start) * rows));
    }
    top += heights[m] + 16;
  });
}
function wireLocal() {
  $("local")?.addEventListener("pointermove", (e) => {
    const cycle = e.offsetX / e.target.clientWidth * run.cycles, second = e.offsetY >= 160, memory = run.local_memory[second ? 1 : 0];
    const word = (second ? 230 - e.offsetY : 144 - e.offsetY) / (second ? 70 : 130) * memory.words;
    const found = memory.extents.filter(([start, stop, first, last]) => start <= word && word < stop && cycleOf(first) <= cycle && cycle <= cycleOf(last)).pop();
    $("held").textContent = found ? `${run.layers[run.timeline[found[2]][1]]?.name ?? ""}: words ${number(found[0])} to ${number(found[1])}` : "";
  });
}

let view = [0, run.cycles || 1];
function drawTimeline() {
  const canvas = $("timeline");
  if (!canvas) return;
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = 190, left = 52;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "11px system-ui, sans-serif";
  const scale = (width - left) / (view[1] - view[0]), lane = 38, names = run.unit_names.slice(0, 4), accent = color("accent");
  names.forEach((name, u) => {
    pen.fillStyle = color("track"); pen.fillRect(left, 6 + u * (lane + 4), width - left, lane);
    pen.fillStyle = color("ink"); pen.fillText(name, 4, 6 + u * (lane + 4) + lane / 2 + 4);
  });
  // Instructions closer than a pixel are drawn as one: a long run has too many to draw each.
  const edge = names.map(() => -1);
  for (const [unit, layer, , start, done] of run.timeline) {
    if (start === null || unit > 3 || done < view[0] || start > view[1]) continue;
    const x = Math.max(left, left + (start - view[0]) * scale), end = Math.min(width, left + (done - view[0]) * scale);
    if (end <= edge[unit] && layer !== chosen) continue;
    edge[unit] = Math.max(edge[unit], end);
    pen.fillStyle = layer === chosen ? accent : unitColors[unit];
    pen.globalAlpha = layer % 2 ? 0.72 : 1;
    pen.fillRect(x, 6 + unit * (lane + 4), Math.max(0.6, end - x - (end - x > 4 ? 1 : 0)), lane);
  }
  pen.globalAlpha = 1; pen.fillStyle = color("dim");
  for (const f of ticks(width)) {
    pen.textAlign = f === 0 ? "left" : f === 1 ? "right" : "center";
    pen.fillText(number(view[0] + (view[1] - view[0]) * f), left + (width - left) * f, height - 6);
  }
  pen.textAlign = "left";
}
let unitColors = [];
function zoom(factor, at) {
  const span = Math.min(run.cycles, Math.max(50, (view[1] - view[0]) * factor));
  const start = Math.max(0, Math.min(run.cycles - span, at - (at - view[0]) * span / (view[1] - view[0])));
  view = [start, start + span];
  drawTimeline();
}
function wireTimeline() {
  const canvas = $("timeline");
  if (!canvas) return;
  const cycle = (e) => view[0] + (e.offsetX - 52) / (canvas.clientWidth - 52) * (view[1] - view[0]);
  const under = (e) => {
    const unit = Math.floor((e.offsetY - 6) / 42), at = cycle(e);
    return run.timeline.findIndex((t) => t[0] === unit && t[3] !== null && t[3] <= at && at <= t[4]);
  };
  let drag = null;
  canvas.addEventListener("wheel", (e) => { e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : 0.8, cycle(e)); }, { passive: false });
  canvas.addEventListener("pointerdown", (e) => { drag = [e.offsetX, view[0]]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", (e) => { if (drag && Math.abs(drag[0] - e.offsetX) < 3) { const i = under(e); if (i >= 0) choose(run.timeline[i][1], true); } drag = null; });
  canvas.addEventListener("dblclick", () => { view = [0, run.cycles]; drawTimeline(); });
  canvas.addEventListener("pointermove", (e) => {
    if (drag) {
      const span = view[1] - view[0], start = drag[1] - (e.offsetX - drag[0]) * span / (canvas.clientWidth - 52);
      view = [Math.max(0, Math.min(run.cycles - span, start)), 0]; view[1] = view[0] + span;
      drawTimeline();
    }
    const i = under(e);
    $("cursor").textContent = i < 0 ? `cycle ${number(cycle(e))}` : `#${i} ${run.layers[run.timeline[i][1]]?.name ?? ""}: ${run.timeline[i][5].split(" ")[0]}, ${number(run.timeline[i][4] - run.timeline[i][3])} cycles`;
  });
}

function wireKeys() {
  for (const id of ["skyline", "traffic"]) {
    $(id)?.addEventListener("keydown", (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (!step || !run.layers.length) return;
      e.preventDefault();
      choose(Math.max(0, Math.min(run.layers.length - 1, chosen + step)), false);
    });
  }
  $("timeline")?.addEventListener("keydown", (e) => {
    const span = view[1] - view[0], middle = (view[0] + view[1]) / 2;
    const step = { ArrowLeft: -0.2, ArrowRight: 0.2 }[e.key], factor = { "+": 0.5, "-": 2 }[e.key];
    if (factor) zoom(factor, middle); else if (e.key === "Home") view = [0, run.cycles]; else if (!step) return;
    if (step) { const start = Math.max(0, Math.min(run.cycles - span, view[0] + step * span)); view = [start, start + span]; }
    e.preventDefault();
    drawTimeline();
  });
}

function paint() {
  unitColors = run.unit_names.map((n) => color(n));
  drawUnits(); drawComparison(); drawTable(); resize();
}
function resize() {
  drawSkyline(); drawTraffic(); drawTimeline(); drawLocal();
  mark();
}
function mark() {
  document.querySelectorAll("[data-layer]").forEach((e) => e.classList.toggle("chosen", +e.dataset.layer === chosen));
}
document.addEventListener("click", (e) => {
  const column = e.target.closest("th[data-column]"), layer = e.target.closest("[data-layer]");
  if (column) { const c = +column.dataset.column; up = c === order ? !up : c < 3; order = c; drawTable(); document.querySelector(`th[data-column="${c}"] button`).focus(); }
  else if (layer) choose(+layer.dataset.layer, layer.tagName !== "TR");
});
$("search").addEventListener("input", drawTable);
window.addEventListener("themechange", paint);
function drawLatency() {
  const clock = $("clock");
  if (!clock) return;
  const seconds = clock.value > 0 ? run.cycles / (clock.value * 1e6) : NaN;
  $("latency").textContent = seconds > 0 ? (1000 * seconds).toFixed(2) : "–";
  $("rate").textContent = seconds > 0 ? (1 / seconds).toFixed(1) : "–";
}
$("clock")?.addEventListener("input", drawLatency);
document.querySelectorAll("#zoom button").forEach((b) => b.addEventListener("click", () => {
  if (b.dataset.zoom === "0") view = [0, run.cycles];
  zoom(+b.dataset.zoom || 1, (view[0] + view[1]) / 2);
}));
// A link to #layer-7 selects that layer and shows its instructions.
function follow() {
  const wanted = Number(/^#layer-(\d+)$/.exec(location.hash)?.[1] ?? NaN);
  if (!(wanted in run.layers)) return false;
  choose(wanted, false);
  $("listing-section").scrollIntoView();
  return true;
}
window.addEventListener("hashchange", follow);
window.addEventListener("resize", resize);
wireTimeline();
wireLocal();
wireKeys();
drawLatency();
paint();
if (!follow() && run.layers.length) {
  // Initially select the first layer that differs, otherwise the longest one.
  const wrong = run.layers.findIndex((l) => l.mismatches);
  choose(wrong >= 0 ? wrong : run.layers.reduce((best, l, i) => (l.cycles > run.layers[best].cycles ? i : best), 0), false);
}
