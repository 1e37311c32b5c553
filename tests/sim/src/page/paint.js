
// Drawing. Everything is drawn anew for each view; only visible parts cost anything.

const GROUPS = [
  { name: "votes", kinds: /^((pre_)?vote(_|$)|timeout_now|leader_status_query)/, colour: "#7b4fc9" },
  { name: "proposals", kinds: /^(pre_)?proposal$/, colour: "#7b4fc9" },
  { name: "declarations", kinds: /^(declaration|leader_elected)$/, colour: "#0a8f5b" },
  { name: "assignment", kinds: /^(leader_assign|nack|foreign_side)/, colour: "#c2410c" },
  { name: "heartbeats", kinds: /(heartbeat|keep_alive|keep_alive_ack)$/, colour: "#7a8791" },
  { name: "probes", kinds: /^p[io]ng$/, colour: "#7a8791" },
  { name: "membership", kinds: /./, colour: "#1a8a9a" },
];
const group = (kind) => GROUPS.find((g) => g.kinds.test(kind));
// Heights of the roles, as shares of a bar: colour is not the only difference.
const HEIGHTS = { leader: 1, candidate: 1, pre_candidate: 0.8, follower: 0.62, observer: 0.62, paused: 0.62, down: 0 };
const BRIEF = new Set(["candidate", "pre_candidate", "leader", "paused"]);
const MOST_ARROWS = 6000;
const FAULT_ROWS = 5;

function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const colours = {};
  for (const name of ["ground", "ink", "faint", "line", "lane", "shade", "shade-line", "focus", "message", "lost",
    ...Object.keys(ROLES)]) colours[name] = style.getPropertyValue(`--${name}`).trim();
  return colours;
}

function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 125 ? "#111417" : "#ffffff";
}

// Diagonal lines: distinct from plain colours without colour.
function hatch(context, line, ground) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const c = tile.getContext("2d");
  if (ground) { c.fillStyle = ground; c.fillRect(0, 0, 8, 8); }
  c.strokeStyle = line;
  c.lineWidth = 1;
  c.beginPath();
  for (const shift of [-8, 0, 8]) { c.moveTo(shift, 8); c.lineTo(shift + 8, 0); }
  c.stroke();
  return context.createPattern(tile, "repeat");
}

function layout(model, width, context) {
  const count = Math.max(1, model.lanes.length);
  const row = Math.max(12, Math.min(46, Math.floor(640 / count)));
  const font = row >= 20 ? 12 : 9;
  context.font = `${font}px system-ui, sans-serif`;
  const widest = model.lanes.reduce((most, lane) => Math.max(most, context.measureText(lane.peer).width), 0);
  const left = Math.ceil(Math.min(150, widest)) + 22;
  const rows = [];
  for (const fault of model.faults) {
    if (fault.own) continue;
    let index = rows.findIndex((end) => end <= fault.from);
    if (index < 0) index = rows.length < FAULT_ROWS ? rows.length : FAULT_ROWS - 1;
    rows[index] = Math.max(rows[index] || 0, fault.to);
    fault.row = index;
  }
  // The label of the end of chaos has its own row if no fault has one.
  const faultRows = Math.max(rows.length, model.healed === undefined ? 0 : 1);
  const top = faultRows * 16 + 24;
  const bar = Math.max(7, Math.round(row * 0.62));
  const strip = Math.max(2, Math.round(row * 0.13));
  const height = top + count * row + 24;
  return { width, height, left, right: width - 12, top, row, bar, strip, font, faultRows,
    bottom: top + count * row };
}

// The lowest pixel row of a lane's bars, and the row under them where the leader's strip begins.
const barBottom = (place, index) => place.top + index * place.row + Math.max(1, Math.round(place.row * 0.08)) + place.bar;

function timeTicks(from, to, pixels) {
  const wanted = (to - from) / Math.max(1, pixels / 110);
  let step = 10 ** Math.floor(Math.log10(Math.max(1, wanted)));
  for (const factor of [1, 2, 5, 10]) if (step * factor >= wanted) { step *= factor; break; }
  const digits = Math.max(0, Math.min(6, Math.ceil(6 - Math.log10(step))));
  const ticks = [];
  for (let k = Math.ceil(from / step); k * step <= to; k += 1) ticks.push({ t: k * step, text: seconds(k * step, digits) });
  return ticks;
}

function firstAfter(list, t, key) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]) < t) low = middle + 1; else high = middle;
  }
  return low;
}

// Draws the view; returns what was drawn, for the pointer and for the digest.
function paint(canvas, model, view, wishes) {
  const ratio = window.devicePixelRatio || 1;
  const context = canvas.getContext("2d");
  const place = layout(model, canvas.clientWidth, context);
  if (canvas.style.height !== `${place.height}px`) canvas.style.height = `${place.height}px`;
  const size = [Math.round(place.width * ratio), Math.round(place.height * ratio)];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const colours = themeColours();
  const scale = (place.right - place.left) / (view.to - view.from);
  const x = (t) => place.left + (t - view.from) * scale;
  const drawn = { place, x, roles: model.lanes.map(() => []), arrows: [], hidden: 0 };
  const c = { context, model, view, place, colours, x, drawn, wishes };

  context.fillStyle = colours.ground;
  context.fillRect(0, 0, place.width, place.height);
  paintGround(c);
  context.save();
  context.beginPath();
  context.rect(place.left, 0, place.right - place.left, place.height);
  context.clip();
  paintFaults(c);
  for (const lane of model.lanes) paintLane(c, lane);
  paintTransfers(c);
  paintMessages(c);
  context.restore();
  return drawn;
}

function paintGround({ context, model, view, place, colours, x, wishes }) {
  context.textBaseline = "middle";
  context.font = `${place.font}px system-ui, sans-serif`;
  for (const lane of model.lanes) {
    const y = place.top + lane.index * place.row;
    if (lane.index % 2 === 0) {
      context.fillStyle = colours.lane;
      context.fillRect(0, y, place.right, place.row);
    }
    const middle = y + place.row / 2, side = Math.min(10, place.row - 4);
    context.fillStyle = lane.colour;
    context.fillRect(3, middle - side / 2, side, side);
    context.fillStyle = colours.ink;
    context.textAlign = "left";
    context.fillText(lane.peer, 17, middle, place.left - 21);
    if (wishes.lane === lane.index) {
      context.strokeStyle = colours.focus;
      context.lineWidth = 1.5;
      context.strokeRect(1, y + 0.5, place.right - 2, place.row - 1);
    }
  }
  context.font = "11px system-ui, sans-serif";
  context.lineWidth = 1;
  for (const tick of timeTicks(view.from, view.to, place.right - place.left)) {
    const at = Math.round(x(tick.t)) + 0.5;
    context.strokeStyle = colours.line;
    context.beginPath();
    context.moveTo(at, place.top - 5);
    context.lineTo(at, place.bottom + 5);
    context.stroke();
    context.fillStyle = colours.faint;
    const half = context.measureText(tick.text).width / 2;
    const middle = Math.max(place.left + half, Math.min(place.right - half, at));
    context.textAlign = "center";
    context.fillText(tick.text, middle, place.top - 12);
    context.fillText(tick.text, middle, place.bottom + 13);
  }
}

function paintFaults({ context, model, view, place, colours, x }) {
  const lines = hatch(context, colours["shade-line"] + "55", null);
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "left";
  for (const fault of model.faults) {
    if (fault.own || fault.to < view.from || fault.from > view.to) continue;
    const from = Math.max(place.left, x(fault.from)), to = Math.min(place.right, x(fault.to));
    const width = Math.max(1, to - from);
    if (fault.lanes) {
      const all = fault.lanes.size === model.lanes.length;
      for (const index of all ? [0] : fault.lanes) {
        const y = place.top + index * place.row, height = all ? place.bottom - place.top : place.row;
        context.fillStyle = colours.shade;
        context.fillRect(from, y, width, height);
        context.fillStyle = lines;
        context.fillRect(from, y, width, height);
      }
    }
    const y = 2 + fault.row * 16;
    context.fillStyle = colours.shade;
    context.fillRect(from, y, width, 14);
    context.fillStyle = colours["shade-line"];
    context.fillRect(from, y, Math.min(2, width), 14);
    if (width > 24) {
      context.save();
      context.beginPath();
      context.rect(from, y, width, 14);
      context.clip();
      context.fillStyle = colours.ink;
      context.fillText(fault.label, from + 5, y + 7.5);
      context.restore();
    }
  }
  if (model.healed !== undefined) {
    const at = Math.round(x(model.healed)) + 0.5;
    context.strokeStyle = colours.faint;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(at, 0);
    context.lineTo(at, place.bottom);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colours.faint;
    context.fillText("chaos ends", at + 4, place.faultRows * 16 - 6);
  }
}

function paintLane(c, lane) {
  const { context, view, place, colours, x, drawn } = c;
  const bottom = barBottom(place, lane.index);
  const list = lane.roles;
  let first = firstAfter(list, view.from, (s) => s.to);
  // Segments shorter than a pixel are drawn last, one pixel wide.
  for (const brief of [false, true]) {
    for (let i = first; i < list.length && list[i].from <= view.to; i += 1) {
      const segment = list[i], role = segment.value;
      if (BRIEF.has(role) !== brief) continue;
      const from = Math.max(place.left - 2, x(segment.from)), to = Math.min(place.right + 2, x(segment.to));
      const width = Math.max(to - from, brief ? 1.5 : 0);
      drawn.roles[lane.index].push([role, segment.from, segment.to]);
      if (role === "down") {
        context.strokeStyle = colours.faint;
        context.setLineDash([2, 4]);
        context.beginPath();
        context.moveTo(from, bottom - 3.5);
        context.lineTo(to, bottom - 3.5);
        context.stroke();
        context.setLineDash([]);
        continue;
      }
      const height = Math.max(4, Math.round(place.bar * (HEIGHTS[role] || 0.62)));
      context.fillStyle = role === "paused" ? hatch(context, colours.ground, colours.paused) : colours[role];
      context.fillRect(from, bottom - height, width, height);
    }
  }
  drawn.roles[lane.index].sort((a, b) => a[1] - b[1]);

  for (const strip of lane.strips) {
    if (strip.to < view.from || strip.from > view.to) continue;
    const leader = c.model.byPeer.get(strip.value);
    context.fillStyle = leader ? leader.colour : colours.faint;
    const from = Math.max(place.left, x(strip.from));
    context.fillRect(from, bottom + 1, Math.max(0.5, Math.min(place.right, x(strip.to)) - from), place.strip);
  }

  paintTerms(c, lane, bottom);
  for (const entry of lane.commands) {
    if (entry.t < view.from || entry.t > view.to) continue;
    const at = x(entry.t), y = bottom - place.bar - 1, side = Math.min(4, place.row / 5);
    context.fillStyle = colours.ink;
    context.beginPath();
    context.moveTo(at - side, y - side);
    context.lineTo(at + side, y - side);
    context.lineTo(at, y + side);
    context.fill();
  }
  for (const life of lane.lives) {
    const last = life.entries[life.entries.length - 1];
    if (last && last.what === "crashed" && last.t >= view.from && last.t <= view.to) {
      cross(context, x(last.t), bottom - place.bar / 2, Math.min(5, place.row / 4), colours.lost, 2);
    }
  }
}

// A term where it begins, and again at the left edge of a view; where they are too dense, the last one counts.
function paintTerms({ context, view, place, colours, x }, lane, bottom) {
  const size = place.row >= 20 ? 10 : 8;
  context.font = `${size}px system-ui, sans-serif`;
  context.textAlign = "left";
  const terms = lane.terms;
  let index = Math.max(0, firstAfter(terms, view.from, (term) => term.t) - 1);
  for (; index < terms.length && terms[index].t <= view.to; index += 1) {
    const term = terms[index], next = terms[index + 1];
    const from = Math.max(place.left, x(term.t)) + 3;
    const room = Math.min(place.right, next ? x(next.t) : Infinity) - from;
    const width = context.measureText(term.text).width;
    if (width > room) continue;
    const at = Math.max(term.t, view.from) + 1;
    const segment = lane.roles[firstAfter(lane.roles, at, (s) => s.to)];
    if (!segment || segment.value === "down") continue;
    const height = Math.max(4, Math.round(place.bar * (HEIGHTS[segment.value] || 0.62)));
    // If the bar is too short for it, later bars are drawn behind the text.
    const wide = x(segment.to) - from > width;
    context.fillStyle = wide && segment.value !== "paused" ? inkOn(colours[segment.value]) : colours.ink;
    if (!wide) {
      context.globalAlpha = 0.75;
      const ink = context.fillStyle;
      context.fillStyle = colours.ground;
      context.fillRect(from - 1, bottom - height / 2 - size / 2, width + 2, size);
      context.fillStyle = ink;
      context.globalAlpha = 1;
    }
    context.fillText(term.text, from, bottom - height / 2);
  }
}

function paintTransfers({ context, model, view, place, colours, x }) {
  for (const change of model.changes) {
    if (!change.before) continue;
    const began = Math.min(change.before.until === null ? change.t : change.before.until, change.t);
    if (change.t < view.from || began > view.to) continue;
    const from = [x(began), barBottom(place, change.before.lane.index) - place.bar / 2];
    const to = [x(change.t), barBottom(place, change.lane.index) - place.bar / 2];
    for (const [style, width] of [[colours.ground, 4], [colours.ink, 1.7]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      // Dashed: there was no leader in between.
      if (began < change.t && width < 4) context.setLineDash([5, 3]);
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.stroke();
      context.setLineDash([]);
    }
    head(context, from, to, 7, colours.ink);
    context.lineWidth = 1;
  }
}

function head(context, from, to, size, colour) {
  const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(...to);
  for (const turn of [2.7, -2.7]) context.lineTo(to[0] + size * Math.cos(angle + turn), to[1] + size * Math.sin(angle + turn));
  context.fill();
}

function cross(context, x, y, size, colour, width) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.beginPath();
  context.moveTo(x - size, y - size);
  context.lineTo(x + size, y + size);
  context.moveTo(x - size, y + size);
  context.lineTo(x + size, y - size);
  context.stroke();
  context.lineWidth = 1;
}

function paintMessages({ context, model, view, place, colours, x, drawn, wishes }) {
  if (!wishes.kinds.size) return;
  const list = model.messages;
  const visible = [];
  for (let i = firstAfter(list, view.from - list.longest, (m) => m.sent); i < list.length && list[i].sent <= view.to; i += 1) {
    if (wishes.kinds.has(list[i].kind) && (list[i].arrived || list[i].sent) >= view.from) visible.push(list[i]);
  }
  // Of too many, every nth.
  const stride = Math.ceil(visible.length / MOST_ARROWS);
  drawn.hidden = visible.length - Math.ceil(visible.length / Math.max(1, stride));
  const middle = (index) => barBottom(place, index) - place.bar * 0.31;
  for (let i = 0; i < visible.length; i += stride) {
    const message = visible[i];
    const colour = group(message.kind).colour;
    const from = [x(message.sent), middle(message.from)];
    let to;
    if (message.arrived !== null) to = [x(message.arrived), middle(message.to)];
    else to = [from[0] + 14, from[1] + (middle(message.to) - from[1]) * 0.6];
    const pending = message.arrived === null && message.sent > model.end - 300_000;
    context.strokeStyle = message.arrived === null && !pending ? colours.lost : colour;
    context.globalAlpha = 0.85;
    if (pending || message.kind.endsWith("heartbeat")) context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    context.setLineDash([]);
    if (message.arrived !== null) head(context, from, to, 5, colour);
    else if (!pending) cross(context, to[0], to[1], 3.5, colours.lost, 1.5);
    context.globalAlpha = 1;
    drawn.arrows.push({ message, from, to });
  }
}
