
// The page: its reader's actions, and its texts.

const errors = [];
window.addEventListener("error", (event) => { errors.push(String(event.message)); publishDigest(); });
const byId = (id) => document.getElementById(id);
const canvas = byId("picture"), tip = byId("tip");
const LEAST_SPAN = 20; // microseconds

const model = buildModel(readTrace(byId("trace").textContent));
const wishes = { kinds: new Set(), lane: null };
const view = { from: 0, to: model.end };
let drawn = null, digest = null, waiting = false;

function redraw() {
  waiting = false;
  drawn = paint(canvas, model, view, wishes);
  const hidden = drawn.hidden ? `${drawn.hidden} of ${drawn.hidden + drawn.arrows.length} messages are not drawn: zoom in.` : "";
  if (byId("note").textContent !== hidden) byId("note").textContent = hidden;
  if (!digest) {
    digest = drawn;
    publishDigest();
  }
}

function later() {
  if (!waiting) { waiting = true; requestAnimationFrame(redraw); }
}

// A digest of the first picture as drawn: for tests, and for programs that read the page.
function publishDigest() {
  const place = digest && digest.place;
  const box = canvas.getBoundingClientRect();
  byId("digest").textContent = JSON.stringify({
    errors,
    view: place && { from: view.from, to: view.to, left: box.left + place.left, right: box.left + place.right },
    lanes: digest ? model.lanes.map((lane) => ({
      peer: lane.peer,
      y: box.top + window.scrollY + barBottom(place, lane.index) - 1,
      strip_y: box.top + window.scrollY + barBottom(place, lane.index) + 1,
      roles: digest.roles[lane.index],
    })) : [],
    terms: model.terms,
    leaders: model.changes.map((change) => [change.lane.peer, change.t]),
    messages: { drawn: drawn ? drawn.arrows.length : 0, sent: model.messages.length,
      lost: model.messages.filter((m) => m.arrived === null).length, unmatched: model.messages.strange },
  }).replaceAll("<", "\\u003c");
}

function show(from, to) {
  const span = Math.max(LEAST_SPAN, Math.min(model.end, to - from));
  view.from = Math.max(0, Math.min(model.end - span, from));
  view.to = view.from + span;
  later();
}

function zoom(factor, around) {
  const t = around === undefined ? (view.from + view.to) / 2 : around;
  const span = Math.max(LEAST_SPAN, Math.min(model.end, (view.to - view.from) * factor));
  const share = (t - view.from) / (view.to - view.from);
  show(t - span * share, t - span * share + span);
}

function pan(share) {
  const span = view.to - view.from;
  show(view.from + span * share, view.to + span * share);
}

function timeAt(x) {
  const { left, right } = drawn.place;
  return view.from + ((x - left) / (right - left)) * (view.to - view.from);
}

// Pointer.

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const { left, right } = drawn.place;
  const pixels = event.deltaMode === 1 ? event.deltaY * 30 : event.deltaY;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    pan((event.deltaX || pixels) / (right - left));
  } else {
    zoom(Math.exp(Math.max(-200, Math.min(200, pixels)) * 0.0022), timeAt(Math.max(left, Math.min(right, event.offsetX))));
  }
}, { passive: false });

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  drag = { x: event.clientX, from: view.from, to: view.to };
  canvas.setPointerCapture(event.pointerId);
  canvas.classList.add("dragged");
  tip.hidden = true;
});
const endDrag = () => { drag = null; canvas.classList.remove("dragged"); };
canvas.addEventListener("pointerup", endDrag);
canvas.addEventListener("pointercancel", endDrag);
canvas.addEventListener("pointermove", (event) => {
  if (drag) {
    const { left, right } = drawn.place;
    const shift = ((event.clientX - drag.x) / (right - left)) * (drag.to - drag.from);
    show(drag.from - shift, drag.to - shift);
  } else if (drawn) showTip(event.offsetX, event.offsetY);
});
canvas.addEventListener("pointerleave", () => { tip.hidden = true; });

function showTip(x, y) {
  const { place } = drawn;
  const text = x < place.left ? labelTip(y) : pictureTip(x, y);
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const stage = canvas.clientWidth;
  tip.style.left = `${Math.max(0, x + 16 + tip.offsetWidth > stage ? x - tip.offsetWidth - 12 : x + 16)}px`;
  tip.style.top = `${Math.max(0, y + 14 + tip.offsetHeight > canvas.clientHeight + 60 ? y - tip.offsetHeight - 8 : y + 14)}px`;
}

function laneAt(y) {
  return model.lanes[Math.floor((y - drawn.place.top) / drawn.place.row)];
}

function labelTip(y) {
  const lane = laneAt(y);
  if (!lane) return "";
  const led = model.changes.filter((change) => change.lane === lane).length;
  return `${lane.peer}: ${lane.lives.length} ${lane.lives.length === 1 ? "incarnation" : "incarnations"}, led ${led} times` +
    `\n${lane.entries.length} entries\n${lane.lives.map((life) => life.header.incarnation).slice(0, 4).join("\n")}`;
}

function pictureTip(x, y) {
  const t = timeAt(x), { place } = drawn;
  if (y < place.top - 20) {
    const row = Math.floor((y - 2) / 16);
    const faults = model.faults.filter((f) => !f.own && f.row === row && f.from <= t && t <= f.to);
    return faults.map((f) => `${f.label}\n${seconds(f.from)} to ${seconds(f.to)}`).join("\n");
  }
  const near = drawn.arrows.filter((arrow) => distance(arrow, x, y) < 4).slice(0, 5);
  if (near.length) return near.map(({ message }) => messageText(message)).join("\n");
  const lane = laneAt(y);
  if (!lane) return "";
  const slack = timeAt(x + 4) - t;
  const entries = [];
  for (const life of lane.lives) {
    for (let i = firstAfter(life.entries, t - slack, (e) => e.t); i < life.entries.length && life.entries[i].t <= t + slack; i += 1) {
      entries.push(life.entries[i]);
    }
  }
  // Messages come last: there are many.
  const rank = (entry) => (entry.what === "sent" || entry.what === "received" ? 1 : 0);
  entries.sort((a, b) => rank(a) - rank(b) || a.t - b.t);
  const lines = entries.slice(0, 8).map((entry) => `${seconds(entry.t, 4)} ${entryText(entry)}`);
  if (entries.length > 8) lines.push(`... ${entries.length - 8} more here`);
  return stateText(lane, t) + (lines.length ? `\n\n${lines.join("\n")}` : "");
}

function messageText(message) {
  const from = model.lanes[message.from].peer, to = model.lanes[message.to].peer;
  const end = message.arrived === null ? (message.sent > model.end - 300_000 ? "under way at the end" : "never arrived")
    : `arrived after ${((message.arrived - message.sent) / 1000).toFixed(2)} ms`;
  return `${from} ${entryText(message.entry)}\n  sent at ${seconds(message.sent, 4)}, ${end}`.replace(`→ ${to}`, `→ ${to}:`);
}

function distance({ from, to }, x, y) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const length = dx * dx + dy * dy || 1;
  const share = Math.max(0, Math.min(1, ((x - from[0]) * dx + (y - from[1]) * dy) / length));
  return Math.hypot(x - from[0] - share * dx, y - from[1] - share * dy);
}

// Keys and buttons.

const ACTIONS = {
  "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), _: () => zoom(1 / 0.7),
  ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), 0: () => show(0, model.end),
  ArrowUp: () => chooseLane(-1), ArrowDown: () => chooseLane(1),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !ACTIONS[event.key]) return;
  const vertical = event.key === "ArrowUp" || event.key === "ArrowDown";
  // Elsewhere the arrow keys move the page, and the checkboxes.
  if (vertical && document.activeElement !== canvas) return;
  event.preventDefault();
  ACTIONS[event.key]();
  if (!vertical && wishes.lane !== null) tellLane();
});
for (const [id, key] of [["in", "+"], ["out", "-"], ["earlier", "ArrowLeft"], ["later", "ArrowRight"], ["fit", "0"]]) {
  byId(id).addEventListener("click", () => ACTIONS[key]());
}

function chooseLane(step) {
  if (!model.lanes.length) return;
  const last = model.lanes.length - 1;
  wishes.lane = wishes.lane === null ? (step > 0 ? 0 : last) : Math.max(0, Math.min(last, wishes.lane + step));
  tellLane();
  later();
}

function tellLane() {
  byId("lane-state").textContent = stateText(model.lanes[wishes.lane], (view.from + view.to) / 2).replaceAll("\n", "; ");
}

// Texts.

function fillSummary() {
  const changes = model.changes.length;
  const parts = [
    model.seed === null ? `began ${new Date(model.origin / 1000).toISOString()}` : `seed ${model.seed}`,
    `${model.lanes.length} peers`, seconds(model.end, 1), `${changes} ${changes === 1 ? "peer" : "times a peer"} began to lead`,
    `${model.messages.length} messages in the trace`,
  ];
  const count = (what, key) => model.lanes.reduce((sum, lane) =>
    sum + lane.entries.reduce((s, entry) => s + (entry.what === what ? (key ? entry[key] : 1) : 0), 0), 0);
  const dropped = count("dropped", "entries");
  if (dropped) parts.push(`${dropped} entries are missing: the disk was too slow`);
  if (count("full")) parts.push("a file reached its limit, and its rest is missing");
  byId("summary").textContent = `${parts.join(" · ")}${model.violation ? "" : " · no violation"}`;
  if (model.seed === null) byId("summary").textContent = parts.join(" · ");
  if (model.violation) {
    byId("violation").hidden = false;
    byId("violation").textContent = `VIOLATION at ${seconds(model.violation.t)}: ${model.violation.property}: ${model.violation.text}`;
  }
  document.title = model.seed === null ? "A run of a real room" : `Seed ${model.seed}, ${model.lanes.length} peers`;
}

function row(table, cells) {
  const line = document.createElement("tr");
  for (const text of cells) {
    const cell = document.createElement("td");
    cell.textContent = text;
    line.append(cell);
  }
  byId(table).tBodies[0].append(line);
}

function fillTables() {
  byId("changes").classList.toggle("termless", !model.terms);
  for (const change of model.changes) {
    row("changes", [seconds(change.t), change.lane.peer, change.record ? termText(change.record) : "",
      change.reason.replace(/_/g, " "), change.before ? change.before.lane.peer : "",
      change.until === null ? "the end" : seconds(change.until)]);
  }
  if (!model.changes.length) row("changes", ["", "no member led", "", "", "", ""]);
  for (const fault of model.faults) row("faults", [seconds(fault.from), seconds(fault.to), fault.label]);
  if (!model.faults.length) row("faults", ["", "", "none"]);
}

function fillLegend() {
  const legend = byId("legend");
  legend.replaceChildren();
  const colours = themeColours();
  const add = (text, draw) => {
    const item = document.createElement("span"), swatch = document.createElement("canvas");
    const ratio = window.devicePixelRatio || 1;
    [swatch.width, swatch.height] = [22 * ratio, 14 * ratio];
    swatch.style.width = "22px";
    swatch.style.height = "14px";
    swatch.setAttribute("aria-hidden", "true");
    const context = swatch.getContext("2d");
    context.scale(ratio, ratio);
    draw(context);
    item.append(swatch, text);
    legend.append(item);
  };
  for (const [role, text] of Object.entries(ROLES)) {
    // A member that elects by gossip asks for no pre-votes.
    if (role === "pre_candidate" && !model.terms) continue;
    add(text, (context) => {
      const height = Math.round(14 * HEIGHTS[role]);
      context.fillStyle = role === "paused" ? hatch(context, colours.ground, colours.paused) : colours[role];
      if (role !== "down") { context.fillRect(0, 14 - height, 22, height); return; }
      context.strokeStyle = colours.faint;
      context.setLineDash([2, 4]);
      context.beginPath();
      context.moveTo(0, 10.5);
      context.lineTo(22, 10.5);
      context.stroke();
    });
  }
  add("strip: who is shown as leader, in that peer's colour", (context) => {
    context.fillStyle = model.lanes.length ? model.lanes[0].colour : colours.ink;
    context.fillRect(0, 6, 22, 4);
  });
  add("hand-over", (context) => {
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.7;
    context.beginPath();
    context.moveTo(2, 2);
    context.lineTo(18, 11);
    context.stroke();
    head(context, [2, 2], [20, 12], 7, colours.ink);
  });
  add("crash", (context) => cross(context, 11, 7, 4, colours.lost, 2));
  add("command of the host", (context) => {
    context.fillStyle = colours.ink;
    context.beginPath();
    context.moveTo(7, 3);
    context.lineTo(15, 3);
    context.lineTo(11, 11);
    context.fill();
  });
  add("fault", (context) => {
    context.fillStyle = colours.shade;
    context.fillRect(0, 0, 22, 14);
    context.fillStyle = hatch(context, colours["shade-line"] + "55", null);
    context.fillRect(0, 0, 22, 14);
  });
}

function fillKinds() {
  const counts = new Map();
  for (const message of model.messages) counts.set(message.kind, (counts.get(message.kind) || 0) + 1);
  const kinds = [...counts.keys()].sort((a, b) => GROUPS.indexOf(group(a)) - GROUPS.indexOf(group(b)) || (a < b ? -1 : 1));
  const field = byId("kinds");
  for (const kind of kinds) {
    const label = document.createElement("label"), box = document.createElement("input"), name = document.createElement("span");
    box.type = "checkbox";
    box.checked = wishes.kinds.has(kind);
    box.addEventListener("change", () => {
      if (box.checked) wishes.kinds.add(kind); else wishes.kinds.delete(kind);
      later();
    });
    name.textContent = `${kind.replace(/_/g, " ")} (${counts.get(kind)})`;
    name.style.borderBottom = `2px solid ${group(kind).colour}`;
    label.append(box, name);
    field.append(label);
  }
  field.hidden = !kinds.length;
}

// `#view=1.5,3.2&show=vote_request,vote_response`: a link to a part of a run.
function readHash() {
  const hash = new URLSearchParams(location.hash.slice(1));
  const [from, to] = (hash.get("view") || "").split(",").map(Number);
  for (const kind of (hash.get("show") || "").split(",").filter(Boolean)) wishes.kinds.add(kind);
  if (to > from) show(from * 1e6, to * 1e6);
}

readHash();
fillSummary();
fillLegend();
fillKinds();
fillTables();
redraw();
new ResizeObserver(later).observe(canvas.parentElement);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { fillLegend(); later(); });
