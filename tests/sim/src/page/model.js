// From the lines of a trace to the drawn model. Times are microseconds since the earliest line of all.

const ROLES = {
  follower: "follower", pre_candidate: "pre-candidate", candidate: "candidate", leader: "leader",
  observer: "observer", paused: "paused", down: "down",
};

function readTrace(text) {
  const sections = [];
  for (const line of text.split("\n")) {
    if (!line) continue;
    let entry;
    try { entry = JSON.parse(line); } catch (error) {
      // The half line at the end of an incarnation that a crash ended.
      continue;
    }
    if (entry.trace !== undefined) sections.push({ header: entry, entries: [] });
    else if (sections.length) sections[sections.length - 1].entries.push(entry);
  }
  return sections;
}

function buildModel(sections) {
  const origin = sections.reduce((least, s) => Math.min(least, s.header.origin_us), Infinity);
  let end = 1;
  for (const section of sections) {
    section.start = section.header.origin_us - origin;
    for (const entry of section.entries) {
      entry.t = section.start + entry.at;
      if (entry.t > end) end = entry.t;
    }
  }
  const model = { origin, end, lanes: [], room: [], byPeer: new Map(), seed: null, violation: null };
  for (const section of sections) {
    const peer = section.header.peer;
    if (section.header.seed !== undefined) model.seed = section.header.seed;
    if (peer === undefined) { model.room.push(...section.entries); continue; }
    let lane = model.byPeer.get(peer);
    if (!lane) {
      lane = { peer, lives: [], entries: [] };
      model.byPeer.set(peer, lane);
      model.lanes.push(lane);
    }
    lane.lives.push(section);
  }
  model.lanes.sort((a, b) => (a.peer < b.peer ? -1 : 1));
  model.lanes.forEach((lane, index) => {
    lane.index = index;
    lane.colour = peerColour(index);
    lane.lives.sort((a, b) => a.start - b.start);
    buildLane(lane, end);
  });
  model.room.sort((a, b) => a.t - b.t);
  for (const entry of model.room) {
    if (entry.what === "violation" && !model.violation) model.violation = entry;
  }
  // Rooms that elect by gossip have none.
  model.terms = model.lanes.some((lane) => lane.terms.length > 0);
  model.messages = matchMessages(model);
  model.changes = leaderChanges(model);
  model.faults = findFaults(model);
  return model;
}

// Contrasting hues for neighbours; roles have other colours, and the tip names strips.
function peerColour(index) {
  const hue = (index * 137.508 + 20) % 360;
  return `hsl(${hue.toFixed(1)} ${index % 2 ? 60 : 85}% ${[46, 62, 38][index % 3]}%)`;
}

// Segments of roles, of shown leaders, and the labels of terms.
function buildLane(lane, end) {
  const roles = [], strips = [], terms = [], commands = [];
  const put = (list, value, from, to, more) => {
    if (to <= from) return;
    const last = list[list.length - 1];
    if (last && last.value === value && last.to === from && !more) { last.to = to; return; }
    list.push({ value, from, to, ...more });
  };
  let at = 0;
  for (const [number, life] of lane.lives.entries()) {
    put(roles, "down", at, life.start);
    at = Math.max(at, life.start);
    life.number = number + 1;
    let role = null, paused = false, over = false, shown = null, shownAt = at, term = "";
    const until = (t) => { put(roles, paused ? "paused" : role || "follower", at, t); at = Math.max(at, t); };
    const showUntil = (t) => { if (shown) put(strips, shown, shownAt, t); shownAt = t; };
    for (const entry of life.entries) {
      entry.life = life.number;
      lane.entries.push(entry);
      const t = entry.t;
      switch (entry.what) {
        case "role": until(t); role = entry.role; break;
        case "paused": until(t); paused = true; break;
        case "resumed": until(t); paused = false; break;
        case "stalled": {
          until(Math.max(at, t - entry.late_us)); paused = true; until(t); paused = false;
          break;
        }
        case "stopped": case "crashed": until(t); showUntil(t); over = true; break;
        case "end": until(t); showUntil(t); over = true; break;
        case "shows": showUntil(t); shown = entry.leader || null; break;
        case "record": {
          const text = termText(entry);
          if (text !== term) { term = text; terms.push({ t, text, term: entry.term, epoch: entry.epoch }); }
          break;
        }
        case "command": commands.push(entry); break;
      }
    }
    if (!over && life.entries.length) {
      // A killed process writes no line: it is down after its last one.
      const last = life.entries[life.entries.length - 1].t;
      until(last); showUntil(last);
    }
  }
  put(roles, "down", at, end);
  Object.assign(lane, { roles, strips, terms, commands });
}

// Empty where there are no terms: before the first election, and in rooms that elect by gossip.
function termText(record) {
  if (!record.epoch && !record.term) return "";
  return (record.epoch ? `e${record.epoch}·` : "") + `t${record.term}`;
}

// Pairs sent with received messages: by sender, receiver, kind and number; of several, the latest that was sent before. Clocks of
// two machines may differ by a second.
const SKEW_US = 1_000_000;
function matchMessages(model) {
  const sent = new Map(), messages = [];
  for (const lane of model.lanes) {
    for (const entry of lane.entries) {
      if (entry.what !== "sent" || !model.byPeer.has(entry.to)) continue;
      const message = { kind: entry.kind, from: lane.index, to: model.byPeer.get(entry.to).index, sent: entry.t,
        arrived: null, entry };
      const key = `${message.from} ${message.to} ${entry.kind} ${entry.n}`;
      const list = sent.get(key);
      if (list) list.push(message); else sent.set(key, [message]);
      messages.push(message);
    }
  }
  let strange = 0;
  for (const lane of model.lanes) {
    for (const entry of lane.entries) {
      if (entry.what !== "received" || !model.byPeer.has(entry.from)) continue;
      const key = `${model.byPeer.get(entry.from).index} ${lane.index} ${entry.kind} ${entry.n}`;
      let best = null;
      for (const message of sent.get(key) || []) {
        if (message.arrived === null && message.sent <= entry.t + SKEW_US &&
          (!best || message.sent <= entry.t)) best = message;
      }
      if (best) best.arrived = entry.t; else strange += 1;
    }
  }
  messages.sort((a, b) => a.sent - b.sent);
  messages.strange = strange;
  messages.longest = messages.reduce((most, m) => Math.max(most, (m.arrived || 0) - m.sent), 300_000);
  return messages;
}

// The leaderships, and the leader before each.
function leaderChanges(model) {
  const changes = [];
  for (const lane of model.lanes) {
    for (const life of lane.lives) {
      let record = null, started = null, followed = null;
      const finish = (t) => { if (started) started.until = t; started = null; };
      for (const entry of life.entries) {
        if (entry.what === "record") {
          record = entry;
          if (started && entry.t === started.t) started.record = entry;
        } else if (entry.what === "role") {
          finish(entry.t);
          if (entry.role === "leader") {
            started = { t: entry.t, lane, record, reason: "", until: null, followed, before: null };
            changes.push(started);
          }
        } else if (entry.what === "shows") {
          if (started && entry.leader === lane.peer && !started.reason) started.reason = entry.reason;
          if (entry.leader && entry.leader !== lane.peer) followed = entry.leader;
        } else if (["stopped", "crashed"].includes(entry.what)) finish(entry.t);
      }
      if (started && !life.entries.some((entry) => entry.what === "end")) finish(life.entries[life.entries.length - 1].t);
    }
  }
  changes.sort((a, b) => a.t - b.t);
  changes.forEach((change, index) => {
    for (let i = index - 1; i >= 0; i -= 1) {
      if (changes[i].lane.peer === change.followed) { change.before = changes[i]; break; }
    }
  });
  return changes;
}

// Cuts that begin and end together are one fault.
function findFaults(model) {
  const faults = [], open = new Map(), groups = new Map();
  const close = (pair, from, to) => {
    const key = `${from} ${to}`;
    if (!groups.has(key)) groups.set(key, { from, to, pairs: [] });
    groups.get(key).pairs.push(pair);
  };
  const losses = new Map();
  const endLoss = (of, t) => {
    const loss = losses.get(of);
    if (loss) faults.push({ from: loss.t, to: t, lanes: null, label: `${of}: ${loss.percent} % lost` });
    losses.delete(of);
  };
  for (const entry of model.room) {
    const key = `${entry.from}\n${entry.to}`;
    if (entry.what === "cut") open.set(key, entry);
    else if (entry.what === "mended") {
      const cut = open.get(key);
      if (cut) { close([entry.from, entry.to], cut.t, entry.t); open.delete(key); }
    } else if (entry.what === "loss") {
      endLoss(entry.of, entry.t);
      if (entry.percent) losses.set(entry.of, entry);
    }
    else if (entry.what === "healed") {
      for (const of of [...losses.keys()]) endLoss(of, entry.t);
      model.healed = entry.t;
    }
  }
  for (const of of [...losses.keys()]) endLoss(of, model.end);
  for (const cut of open.values()) close([cut.from, cut.to], cut.t, model.end);
  for (const group of groups.values()) {
    const lanes = new Set();
    for (const pair of group.pairs) for (const peer of pair) {
      if (model.byPeer.has(peer)) lanes.add(model.byPeer.get(peer).index);
    }
    faults.push({ from: group.from, to: group.to, lanes, label: cutLabel(group.pairs) });
  }
  for (const lane of model.lanes) {
    lane.lives.forEach((life, index) => {
      for (const entry of life.entries) {
        if (entry.what === "crashed") {
          const next = lane.lives[index + 1];
          faults.push({ from: entry.t, to: next ? next.start : model.end, lanes: new Set([lane.index]), own: true,
            label: `${lane.peer} crashed` });
        }
      }
    });
    for (const segment of lane.roles) {
      if (segment.value === "paused") {
        faults.push({ from: segment.from, to: segment.to, lanes: new Set([lane.index]), own: true,
          label: `${lane.peer} paused` });
      }
    }
  }
  faults.sort((a, b) => a.from - b.from);
  return faults;
}

function cutLabel(pairs) {
  const has = new Set(pairs.map((pair) => pair.join("\n")));
  if (pairs.length === 1) return `cut ${pairs[0][0]} → ${pairs[0][1]}`;
  if (pairs.length === 2 && has.has(`${pairs[0][1]}\n${pairs[0][0]}`)) return `cut ${pairs[0][0]} ↔ ${pairs[0][1]}`;
  // Two sides, if all of one are cut off from all of the other.
  const one = new Set(), other = new Set();
  const [first] = pairs[0];
  for (const [from, to] of pairs) if (from === first) other.add(to);
  for (const [from, to] of pairs) if (other.has(to)) one.add(from);
  const apart = [...one].every((peer) => !other.has(peer));
  const out = [...one].every((a) => [...other].every((b) => has.has(`${a}\n${b}`)));
  const back = [...one].every((a) => [...other].every((b) => has.has(`${b}\n${a}`)));
  const count = one.size * other.size;
  if (apart && out && back && pairs.length === 2 * count) return `split ${sides(one, other, "|")}`;
  if (apart && out && pairs.length === count) return `cut one way ${sides(one, other, "→")}`;
  return `${pairs.length} directions cut`;
}

function sides(one, other, sign) {
  const text = (side) => (side.size <= 4 ? [...side].sort().join(" ") : `${side.size} peers`);
  return `${text(one)} ${sign} ${text(other)}`;
}

function seconds(t, digits = 3) {
  return `${(t / 1e6).toFixed(digits)} s`;
}

// The text of a proposal in a seeded cluster, and of its answers.
function ballotText(ballot) {
  return `ballot ${ballot.counter} of ${ballot.proposer}`;
}

// One line about an entry, for people.
function entryText(entry) {
  const words = (text) => String(text).replace(/_/g, " ");
  const about = (e) => `${words(e.kind)}${e.granted === undefined ? "" : e.granted ? ": yes" : ": no"}` +
    `${e.term ? `, t${e.term}` : ""}${e.ballot === undefined ? "" : `, ${ballotText(e.ballot)}`}${e.names === undefined ? "" : `, ${e.names}`} #${e.n}`;
  switch (entry.what) {
    case "role": return `becomes ${ROLES[entry.role] || entry.role}`;
    case "record": return `record${termText(entry) ? ` ${termText(entry)}` : ""}, leader ${entry.leader || "undecided"}${entry.assigned ? ", assigned" : ""}`;
    case "vote": return `votes for ${entry.candidate} in t${entry.term}`;
    case "shows": return `shows ${entry.leader || "no leader"} (${words(entry.reason)})`;
    case "sent": return `→ ${entry.to} ${about(entry)}`;
    case "received": return `← ${entry.from} ${about(entry)}`;
    case "member_state": return `${entry.peer} is ${entry.state} in t${entry.version}`;
    case "command": return `host: ${words(entry.name)}${entry.peer ? ` ${entry.peer}` : ""}` +
      `${entry.value === undefined ? "" : ` ${entry.value}`}`;
    case "stalled": return `stood still for ${seconds(entry.late_us)}`;
    default: {
      const rest = Object.entries(entry).filter(([key]) => !["at", "what", "t", "life"].includes(key));
      return `${words(entry.what)}${rest.map(([, value]) => ` ${words(value)}`).join(",")}`;
    }
  }
}

// The first few of many words.
function shorten(words) {
  return `${words.slice(0, 12).join(", ")}${words.length > 12 ? ", ..." : ""}`;
}

// The state of a lane's peer at a time.
function stateAt(lane, t) {
  const state = { role: "down", term: "", shows: null, reason: "", linked: new Set(), vote: null, life: 0, members: new Map() };
  const segment = lane.roles.find((s) => s.from <= t && t < s.to) || lane.roles[lane.roles.length - 1];
  if (segment) state.role = segment.value;
  let life = null;
  for (const candidate of lane.lives) if (candidate.start <= t) life = candidate;
  if (!life) return state;
  state.life = life.number;
  for (const entry of life.entries) {
    if (entry.t > t) break;
    switch (entry.what) {
      case "record": state.term = termText(entry); state.record = entry.leader || "undecided"; break;
      case "shows": state.shows = entry.leader || null; state.reason = entry.reason; break;
      case "vote": state.vote = `${entry.candidate} (t${entry.term})`; break;
      case "member_state": state.members.set(entry.peer, entry.state); break;
      case "joined": case "returned": state.linked.add(entry.peer); break;
      case "left": case "reconnecting": state.linked.delete(entry.peer); break;
    }
  }
  return state;
}

function stateText(lane, t) {
  const state = stateAt(lane, t);
  let text = `${lane.peer} at ${seconds(t, 4)}: ${ROLES[state.role] || state.role}`;
  if (state.role === "down") return text;
  text += `${model.terms ? `, ${state.term || "no term"}` : ""}, record ${state.record || "none"}`;
  text += `\nshows ${state.shows || "no leader"}${state.reason ? ` (${state.reason})` : ""}`;
  if (state.vote) text += `\nvoted for ${state.vote}`;
  const names = [...state.linked].sort();
  text += `\nlinked to ${names.length}${names.length ? `: ${shorten(names)}` : ""}`;
  const members = [...state.members].sort(([a], [b]) => (a < b ? -1 : 1));
  if (members.length) text += `\nmembers: ${shorten(members.map(([peer, now]) => `${peer} ${now}`))}`;
  if (lane.lives.length > 1) text += `\nincarnation ${state.life} of ${lane.lives.length}`;
  return text;
}
