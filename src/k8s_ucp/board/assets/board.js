// The board's page: keeps the state that the server sends and updates only what has changed.
"use strict";

const byId = (id) => document.getElementById(id);
const csrf = document.querySelector("meta[name=csrf]").content;
let known = {}; // {section: {key: row}}, as the server has it

// Small elements of the page. Text is always inserted as text, never as markup.

// On a phone tables are displayed as blocks, and browsers then lose their roles.
const ROLES = { table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell" };

function element(name, text, className) {
  const made = document.createElement(name);
  if (ROLES[name]) made.setAttribute("role", ROLES[name]);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function heading(text, scope) {
  const made = element("th", text);
  made.scope = scope;
  made.setAttribute("role", scope === "col" ? "columnheader" : "rowheader");
  return made;
}

function seconds(time) {
  const value = typeof time === "number" ? time * 1000 : Date.parse(time);
  return Number.isNaN(value) ? null : (Date.now() - value) / 1000;
}

function span(amount) {
  const far = Math.abs(amount);
  if (far < 90) return `${Math.round(far)} s`;
  if (far < 5400) return `${Math.round(far / 60)} min`;
  if (far < 129600) return `${Math.round(far / 3600)} h`;
  return `${Math.round(far / 86400)} d`;
}

function ago(time) {
  if (time === null || time === undefined) return "";
  const amount = seconds(time);
  if (amount === null) return String(time);
  return amount >= 0 ? `${span(amount)} ago` : `in ${span(amount)}`;
}

// An absolute time, for texts that screen readers announce when they change.
function clock(time) {
  const value = new Date(time * 1000);
  const today = value.toDateString() === new Date().toDateString();
  return today ? value.toLocaleTimeString() : value.toLocaleString();
}

function when(time) {
  const made = element("time", ago(time));
  if (time === null || time === undefined) return made;
  const value = typeof time === "number" ? new Date(time * 1000) : new Date(time);
  if (!Number.isNaN(value.valueOf())) {
    made.dateTime = value.toISOString();
    made.title = value.toLocaleString();
  }
  return made;
}

// The state of an app in an environment

function mood(row) {
  if (row.health === "Degraded" || row.health === "Missing" || row.problem) return "bad";
  if (row.sync !== "Synced" || row.health !== "Healthy") return "wait";
  return "good";
}

const SIGNS = { good: "\u2713", wait: "\u2026", bad: "\u2717" };

function cell(row) {
  const made = element("button", null, `cell ${mood(row)}`);
  made.type = "button";
  made.dataset.key = `${row.app}/${row.env}`;
  made.tabIndex = -1;
  made.setAttribute("aria-haspopup", "dialog");
  made.append(element("span", row.tag || row.images.map(tagOf).join(", ") || "no version", "tag"));
  const state = element("span", null, `state ${mood(row)}`);
  state.append(`${SIGNS[mood(row)]} ${row.sync}, ${row.health} `);
  made.append(state);
  if (row.since) {
    const more = element("span", null, "more");
    more.append(when(row.since));
    made.append(more);
  }
  if (row.held.length) made.append(element("span", `held: ${row.held.join(", ")}`, "more"));
  if (row.newer) made.append(element("span", `\u25b2 ${row.newer.tag} in ${row.newer.env}`, "more"));
  return made;
}

function tagOf(image) {
  const name = image.split("@")[0];
  const tag = name.slice(name.lastIndexOf("/") + 1).split(":")[1];
  return tag || image.split("@")[1] || name;
}

// The grid of apps and environments

const cells = new Map(); // key: its button
const lines = new Map(); // app: its row
let columns = "";

function drawGrid(changedKeys) {
  const rows = known.apps || {};
  const environments = known.about[""].environments;
  const apps = [...new Set(Object.values(rows).map((row) => row.app))].sort();
  const shape = JSON.stringify([environments, apps]);
  if (shape !== columns || changedKeys === null) {
    columns = shape;
    rebuildGrid(environments, apps, rows);
  } else {
    for (const key of changedKeys) replaceCell(key, rows[key]);
  }
  applyFilter();
}

function rebuildGrid(environments, apps, rows) {
  const focused = document.activeElement && document.activeElement.dataset.key;
  cells.clear();
  lines.clear();
  const heads = ["App", ...environments].map((name) => heading(name, "col"));
  byId("grid-head").replaceChildren(...heads);
  const body = document.createDocumentFragment();
  for (const app of apps) {
    const line = element("tr");
    line.append(heading(app, "row"));
    for (const env of environments) {
      const place = element("td");
      place.dataset.label = env;
      const row = rows[`${app}/${env}`];
      if (row) {
        const made = cell(row);
        cells.set(made.dataset.key, made);
        place.append(made);
      } else {
        place.append(element("span", "not deployed", "quiet"));
      }
      line.append(place);
    }
    lines.set(app, line);
    body.append(line);
  }
  byId("grid-body").replaceChildren(body);
  byId("grid-empty").hidden = apps.length > 0;
  byId("grid-empty").textContent = known.about[""].asked ? "No apps yet." : "No data yet.";
  const target = cells.get(focused) || cells.values().next().value;
  if (target) target.tabIndex = 0;
  if (focused && cells.has(focused)) cells.get(focused).focus();
}

function replaceCell(key, row) {
  const before = cells.get(key);
  if (!before || !row) return;
  const made = cell(row);
  made.tabIndex = before.tabIndex;
  made.classList.add("changed");
  const focused = document.activeElement === before;
  before.replaceWith(made);
  cells.set(key, made);
  if (focused) made.focus();
}

function applyFilter() {
  const words = byId("words").value.trim().toLowerCase();
  const rows = Object.values(known.apps || {});
  const counts = { good: 0, wait: 0, bad: 0, newer: 0 };
  const wanted = new Map();
  for (const row of rows) {
    counts[mood(row)] += 1;
    if (row.newer) counts.newer += 1;
    const fits =
      (!words || row.app.toLowerCase().includes(words) || row.tag.toLowerCase().includes(words)) &&
      (!byId("unwell").checked || mood(row) !== "good") &&
      (!byId("promotable").checked || row.newer);
    wanted.set(row.app, wanted.get(row.app) || fits);
  }
  for (const [app, line] of lines) line.hidden = !wanted.get(app);
  const attention = counts.wait + counts.bad;
  const text = rows.length
    ? `${rows.length} deployments: ${counts.good} healthy, ${attention} need attention, ${counts.newer} can be promoted`
    : "";
  if (byId("summary").textContent !== text) byId("summary").textContent = text;
}

for (const id of ["words", "unwell", "promotable"]) byId(id).addEventListener("input", applyFilter);
byId("filter").addEventListener("submit", (event) => event.preventDefault());

byId("grid-body").addEventListener("click", (event) => {
  const target = event.target.closest(".cell");
  if (target) openDetails(target.dataset.key);
});

byId("grid-body").addEventListener("keydown", (event) => {
  const target = event.target.closest(".cell");
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  if (!target || !steps[event.key]) return;
  event.preventDefault();
  const [down, right] = steps[event.key];
  let line = target.closest("tr");
  let column = [...line.children].indexOf(target.closest("td"));
  for (;;) {
    column += right;
    if (down > 0) line = line.nextElementSibling;
    if (down < 0) line = line.previousElementSibling;
    if (!line || !line.children[column]) return;
    const next = line.hidden ? null : line.children[column].querySelector(".cell");
    if (next) {
      target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      return;
    }
  }
});

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
  if (event.key === "/" && !typing && !byId("details").open) {
    event.preventDefault();
    byId("words").focus();
  }
});

// The details of one app in one environment, and its actions

let shownKey = "";
let busy = false;

function fact(list, name, ...values) {
  const shown = values.filter((value) => value !== "" && value !== null && value !== undefined);
  if (!shown.length) return;
  const place = element("dd");
  place.append(...shown);
  list.append(element("dt", name), place);
}

const KINDS = {
  promote: "promoted",
  rollback: "rolled back",
  hold: "put on hold",
  release: "hold released",
  edit: "edited",
};

function changeWords(change) {
  if (!change) return [];
  const from = change.from ? ` from ${change.from}` : "";
  return [`${KINDS[change.kind] || change.kind}${from} by ${change.by}, `, when(change.time), ` (${change.commit})`];
}

function openDetails(key) {
  shownKey = key;
  byId("outcome").textContent = "";
  byId("outcome").className = "";
  byId("history").replaceChildren();
  drawDetails();
  loadHistory();
  if (!byId("details").open) byId("details").showModal();
}

async function loadHistory() {
  const key = shownKey;
  const { app, env } = known.apps[key];
  let found = [];
  try {
    const response = await fetch(`history?${new URLSearchParams({ app, env })}`);
    if (response.ok) found = await response.json();
  } catch {
    // The page reports a lost connection elsewhere.
  }
  if (key !== shownKey) return;
  drawTable(
    byId("history"),
    ["When", "What", "From", "To", "By", "Commit"],
    found.map((each) => [when(each.time), KINDS[each.kind] || each.kind, each.from, each.to, each.by, each.commit]),
    "No tag changes.",
  );
}

function drawDetails() {
  const row = (known.apps || {})[shownKey];
  if (!row) return;
  byId("details-title").textContent = `${row.app} in ${row.env}`;
  const facts = document.createDocumentFragment();
  fact(facts, "Version", row.tag);
  fact(facts, "Sync", row.sync);
  fact(facts, "Health", row.health);
  if (row.since) fact(facts, "Since", when(row.since));
  fact(facts, "Why", row.why);
  fact(facts, "Problem", row.problem);
  fact(facts, "Images", row.images.join(", "));
  fact(facts, "Changed", ...changeWords(row.changed));
  if (row.newer) {
    fact(facts, "Newer", `${row.newer.tag} in ${row.newer.env}; `, ...changeWords(row.newer.changed));
  }
  fact(facts, "Held", row.held.join(", "));
  fact(facts, "Application", row.application);
  byId("facts").replaceChildren(facts);
  drawActions(row);
}

function choices(row) {
  const found = [];
  if (row.newer) {
    found.push({
      label: `Promote ${row.newer.tag} from ${row.newer.env}`,
      command: `ucp promote ${row.app} --env ${row.env} --from ${row.newer.env}`,
      body: { kind: "promote", images: row.newer.images },
    });
  }
  const rollback = `ucp rollback ${row.app} --env ${row.env}`;
  const pins = Object.values(row.pins).filter(Boolean);
  if (pins.length) {
    found.push({ label: "Roll back and hold", command: rollback, body: { kind: "rollback" } });
  }
  if (pins.some((pin) => !row.held.includes(pin))) {
    found.push({ label: `Hold at ${row.tag}`, command: `${rollback} --hold`, body: { kind: "hold" } });
  }
  if (row.held.length) {
    found.push({
      label: "Release the hold",
      command: `${rollback} --release-hold`,
      body: { kind: "release-hold" },
    });
  }
  // The displayed state is sent with the request: a change based on an outdated state is refused.
  for (const each of found) Object.assign(each.body, { app: row.app, env: row.env, seen: row.pins });
  return found;
}

let drawnActions = "";

function drawActions(row) {
  const found = choices(row);
  const shape = JSON.stringify([shownKey, found]);
  if (shape === drawnActions || busy) return; // keep the disabled buttons until the request ends
  drawnActions = shape;
  byId("commands").textContent = found.map((each) => each.command).join("\n");
  if (document.body.dataset.mode !== "write") {
    byId("actions").replaceChildren(
      element("p", "This board is read-only; ucp board --write allows changes.", "quiet"),
    );
    return;
  }
  byId("actions").replaceChildren(...found.map((each) => actionButton(row, each)));
}

function actionButton(row, choice) {
  const button = element("button", choice.label);
  button.type = "button";
  button.dataset.kind = choice.body.kind;
  button.addEventListener("click", () => {
    if (!button.classList.contains("main")) {
      for (const each of byId("actions").children) each.classList.remove("main");
      button.classList.add("main");
      button.textContent = `Confirm: ${choice.label} (${row.app} in ${row.env})`;
      return;
    }
    change(choice.body);
  });
  return button;
}

async function change(body) {
  busy = true;
  for (const each of byId("actions").children) each.disabled = true;
  byId("outcome").className = "quiet";
  byId("outcome").textContent = "working";
  let answer;
  try {
    const response = await fetch("actions", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-UCP-Board": csrf },
      body: JSON.stringify(body),
    });
    answer = response.ok
      ? await response.json()
      : { ok: false, message: `the board refused the change (${response.status})` };
  } catch {
    answer = { ok: false, message: "the board does not respond" };
  }
  busy = false;
  byId("outcome").className = answer.ok ? "good" : "bad";
  byId("outcome").textContent = answer.message;
  drawnActions = "";
  drawDetails();
  loadHistory();
}

// The other sections: small tables, rebuilt when one of their rows changes

const FEW = 10;
const unfolded = new Set(); // lists that the user has expanded

function drawTable(target, heads, rows, empty) {
  const shown = unfolded.has(target) ? rows : rows.slice(0, FEW);
  const focused = target.contains(document.activeElement) && document.activeElement.className === "more-rows";
  drawRows(target, heads, shown, empty);
  if (rows.length <= FEW) return;
  const rest = rows.length - FEW;
  const button = element("button", unfolded.has(target) ? "Show fewer" : `Show ${rest} more`, "more-rows");
  button.type = "button";
  button.setAttribute("aria-expanded", String(unfolded.has(target)));
  button.addEventListener("click", () => {
    if (!unfolded.delete(target)) unfolded.add(target);
    drawTable(target, heads, rows, empty);
  });
  target.append(button);
  if (focused) button.focus({ preventScroll: unfolded.has(target) });
}

function drawRows(target, heads, rows, empty) {
  if (!rows.length) {
    target.replaceChildren(element("p", empty, "quiet"));
    return;
  }
  const table = element("table");
  const head = element("tr");
  for (const each of heads) head.append(heading(each, "col"));
  const top = element("thead");
  top.append(head);
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    row.forEach((value, index) => {
      const place = element("td");
      place.dataset.label = heads[index];
      if (value !== "" && value !== null && value !== undefined) place.append(value);
      line.append(place);
    });
    body.append(line);
  }
  table.append(top, body);
  target.replaceChildren(table);
}

function word(good, yes, no) {
  return element("span", good ? `\u2713 ${yes}` : `\u2717 ${no}`, good ? "good" : "bad");
}

function stateWord(text, mood) {
  return element("span", `${SIGNS[mood]} ${text}`, mood);
}

function conditionWord(text) {
  return stateWord(text, { True: "good", False: "bad" }[text] || "wait");
}

const rowsOf = (section) => Object.values(known[section] || {});
const target = (id) => byId(id).querySelector(".rows");
const RANKS = { error: 0, warning: 1, info: 2 };
const WORST = { error: "bad", warning: "wait", info: "wait" };

const DRAW = {
  findings: () =>
    drawTable(
      target("findings"),
      ["Severity", "What", "Next"],
      rowsOf("findings")
        .sort((a, b) => RANKS[a.severity] - RANKS[b.severity] || a.id.localeCompare(b.id))
        .map((row) => [stateWord(row.severity, WORST[row.severity]), row.message, row.next]),
      known.about[""].asked ? "No problems found." : "No data yet.",
    ),
  environments: () =>
    drawTable(
      target("environments"),
      ["Environment", "Cluster", "Provider", "State", "Registered", "Token", "Why"],
      known.about[""].environments
        .map((name) => (known.environments || {})[name])
        .filter(Boolean)
        .map((row) => [
          row.name,
          row.cluster,
          row.simulated ? `${row.provider}, simulated` : row.provider,
          row.state === "running" ? word(row.ready && row.reachable, "ready", "not ready") : row.state,
          word(row.registered, "registered", "not registered"),
          row.tokenExpiresAt ? tokenWord(row.tokenExpiresAt) : "no expiry",
          row.why,
        ]),
      "No environments yet.",
    ),
  components: () =>
    drawTable(
      byId("components-rows"),
      ["Component", "Version", "Runs as", "State", "Why"],
      rowsOf("components").map((row) => [
        row.name, row.version, row.placement, word(row.ready, "ready", "not ready"), row.why,
      ]),
      "No data yet.",
    ),
  applications: () =>
    drawTable(
      byId("applications-rows"),
      ["Application", "Sync", "Health", "Commit", "Why"],
      rowsOf("applications").map((row) => [
        row.name,
        stateWord(row.sync, row.sync === "Synced" ? "good" : "wait"),
        stateWord(row.health, mood({ ...row, sync: "Synced" })),
        row.revision,
        row.why,
      ]),
      "None.",
    ),
  mirrors: () =>
    drawTable(
      target("mirrors"),
      ["Mirror", "State", "Done", "Pending", "Why"],
      rowsOf("mirrors").map((row) => [
        row.name, word(row.ready, "in sync", "not in sync"), row.done.join(", "), row.pending.join(", "), row.why,
      ]),
      "No mirrors.",
    ),
  resources: () =>
    drawTable(
      target("resources"),
      ["Kind", "Name", "Synced", "Ready", "Why"],
      rowsOf("resources").map((row) => [
        row.kind,
        row.deleting ? `${row.name} (being deleted)` : row.name,
        conditionWord(row.synced),
        conditionWord(row.ready),
        row.why,
      ]),
      "No Crossplane objects.",
    ),
  events: () =>
    drawTable(
      target("events"),
      ["Last", "Type", "About", "Reason", "Message"],
      rowsOf("events")
        .sort((a, b) => String(b.last).localeCompare(String(a.last)))
        .map((row) => [
          when(row.last),
          stateWord(row.type || "Normal", row.type === "Warning" ? "bad" : "good"),
          row.about,
          row.count > 1 ? `${row.reason} (${row.count} times)` : row.reason,
          row.message,
        ]),
      "No Events.",
    ),
};

function tokenWord(time) {
  const left = -seconds(time);
  const made = element("span", left > 0 ? "expires " : "expired ", left > 0 ? "" : "bad");
  made.append(when(time));
  return made;
}

function drawAbout() {
  const about = known.about[""];
  const problems = [];
  if (about.lost) {
    const since = about.lostSince ? ` since ${clock(about.lostSince)}; the page shows its last known state` : "";
    problems.push(`The core cluster ${about.core.name} does not respond${since}.\nnext: ucp start, or ucp doctor`);
  }
  if (about.problem) problems.push(`The app repository can't be read: ${about.problem}`);
  const text = problems.join("\n");
  if (byId("alert").textContent !== text) byId("alert").textContent = text;
  byId("alert").hidden = !text;
  showAge();
}

// The map is drawn by the server when it is opened

let mapTimer = null;

function drawMap() {
  if (!byId("map-details").open || mapTimer) return;
  const image = element("img");
  image.alt = "Repositories, core cluster and environments with their apps; the tables above contain the same data.";
  image.src = `map.svg?${Date.now()}`;
  image.addEventListener("load", () => byId("map-frame").replaceChildren(image));
  mapTimer = setTimeout(() => { mapTimer = null; }, 5000);
}

byId("map-details").addEventListener("toggle", drawMap);

// What the server sends

function draw(sections, changedApps) {
  if (sections.has("about")) drawAbout();
  if (sections.has("apps") || sections.has("about")) drawGrid(changedApps);
  for (const [name, drawOne] of Object.entries(DRAW)) {
    if (sections.has(name) || (sections.has("about") && (name === "environments" || name === "findings"))) drawOne();
  }
  if (byId("details").open) drawDetails();
  if (["apps", "environments", "components"].some((name) => sections.has(name))) drawMap();
}

function announce(keys) {
  if (!keys.length || keys.length > 3) return;
  byId("announcement").textContent = keys
    .map((key) => known.apps[key])
    .filter(Boolean)
    .map((row) => `${row.app} in ${row.env}: ${row.tag}, ${row.sync}, ${row.health}`)
    .join("; ");
}

let disconnectedSince = null;

// The page may be outdated: the board or the core cluster may not be responding.
function showAge() {
  const lost = known.about && known.about[""].lost;
  document.body.classList.toggle("stale", Boolean(disconnectedSince || lost));
  let text = lost ? "core cluster lost" : "live";
  if (disconnectedSince) {
    text = stream.readyState === EventSource.CLOSED
      ? "disconnected: open the URL that `ucp board` printed last"
      : `connection lost at ${clock(disconnectedSince)}, reconnecting`;
  }
  if (byId("connection").textContent !== text) byId("connection").textContent = text;
}

const stream = new EventSource("events");
stream.addEventListener("open", () => {
  disconnectedSince = null;
  showAge();
});
stream.addEventListener("error", () => {
  disconnectedSince = disconnectedSince || Date.now() / 1000;
  showAge();
});
stream.addEventListener("snapshot", (event) => {
  known = JSON.parse(event.data);
  draw(new Set(Object.keys(known)), null);
});
stream.addEventListener("change", (event) => {
  const changes = JSON.parse(event.data);
  for (const [section, { put, drop }] of Object.entries(changes)) {
    const rows = (known[section] = known[section] || {});
    Object.assign(rows, put);
    for (const key of drop) delete rows[key];
  }
  const changed = changes.apps ? Object.keys(changes.apps.put) : [];
  draw(new Set(Object.keys(changes)), changes.apps && changes.apps.drop.length ? null : changed);
  announce(changed);
});

setInterval(() => {
  for (const each of document.querySelectorAll("time[datetime]")) each.textContent = ago(each.dateTime);
}, 20000);
