/* The list that mirrors the selected box: everything that the table says about it. */

const details = document.getElementById("details");

function addDetail(name, text) {
  const item = make("li");
  item.append(make("b", "", `${name}: `), text);
  details.append(item);
}

function showDetails(box) {
  details.replaceChildren();
  if (box.kind === "device") {
    deviceDetails(box.device);
  } else {
    serverDetails(box);
  }
}

function deviceDetails(device) {
  const server = table.serverOf(device);
  addDetail("rank", `${table.rankName(device)} of ${table.size.toLocaleString("en")}`);
  addDetail("device", table.idName(device));
  addDetail("address", raw.addresses[device].split(" ").join(", ") || "none");
  if (raw.superDevices !== null) {
    addDetail("super device id", `${raw.superDevices[device] ?? "none"}`);
  }
  addDetail("server", table.servers[server]);
  if (table.podOf(server) !== -1) {
    addDetail("super pod", raw.pods[table.podOf(server)]);
  }
  if (table.lines !== null) {
    addDetail("line", `${raw.file}:${table.lines[device]}`);
  }
  linkDetails(device, server);
  outerDetails(device, server);
  markDetails([...(marks.ofDevice.get(device) ?? []), ...(marks.ofServer.get(server) ?? [])]);
}

function linkDetails(device, server) {
  const inner = raw.links.inner[shared(raw.links.innerOf, server)];
  const kinds = new Map();
  for (const other of inner ? table.devicesOf(server) : []) {
    const word = table.link(device, other);
    if (other !== device && word !== null) {
      addTo(kinds, word, table.rank(other));
    }
  }
  for (const [word, ranks] of kinds) {
    const known = ranks.filter((rank) => rank !== null).sort((one, other) => one - other);
    addDetail(raw.links.words[word][0], `with ${known.length === 1 ? "rank" : "ranks"} ${folded(known)}`);
  }
}

/* The other servers: how many ranks and servers a device reaches by each link. */
function outerDetails(device, server) {
  const found = new Map();
  for (let other = 0; raw.links.across !== null && other < table.servers.length; other += 1) {
    for (let end = table.starts[other]; other !== server && end < table.starts[other + 1]; end += 1) {
      const word = table.link(device, end);
      const known = found.get(word) ?? { ranks: 0, servers: new Set() };
      known.ranks += 1;
      known.servers.add(other);
      found.set(word, known);
    }
  }
  for (const [word, known] of found) {
    const where = counted(known.servers.size, "other server");
    addDetail(raw.links.words[word][0], `with ${counted(known.ranks, "rank")} of ${where}`);
  }
}

const BOX_NAMES = { pod: "super pod", chunk: "servers", server: "server" };

function serverDetails(box) {
  const { servers } = box;
  addDetail(BOX_NAMES[box.kind], box.head.querySelector(".name").textContent.replace(/^super pod /, ""));
  if (servers.length > 1) {
    addDetail("number of servers", servers.length.toLocaleString("en"));
  } else {
    const start = table.starts[servers[0]];
    const ids = table.devicesOf(servers[0]).map(table.id).filter((id) => id !== null);
    addDetail("devices", folded(ids));
    if (table.lines !== null && table.starts[servers[0] + 1] > start) {
      addDetail("line of its first device", `${raw.file}:${table.lines[start]}`);
    }
    markDetails(marks.ofServer.get(servers[0]));
  }
  addDetail("ranks", ranksOf(servers).replace(/^ranks? /, ""));
  const marked = servers.filter((server) => marks.inServer.has(server));
  if (marked.length && servers.length > 1) {
    addDetail("marked", counted(marked.length, "server"));
  }
}

function markDetails(entries) {
  for (const { note, mark } of entries ?? []) {
    const item = make("li", "", `${symbolText(note)} ${markWords([{ note, mark }])[0]}`);
    details.append(item);
  }
}

function addSign(sign, className, meaning) {
  const item = make("li");
  item.append(make("span", `sign-of ${className}`, sign), ` ${meaning}`);
  document.getElementById("signs").append(item);
}

/* A line for each sign that is on this page. */
function fillSigns() {
  const used = new Set(raw.notes.map(({ kind }) => kind));
  addSign("5", "large", "the rank of a device; below it its id on the server and its address");
  for (const kind of KINDS.filter((one) => used.has(one))) {
    const isNumbered = raw.notes.some((note) => note.kind === kind && note.number);
    addSign(SYMBOLS[kind], `badge ${kind}`, raw.kinds[kind] + (isNumbered ? ", with its number in the list" : ""));
  }
  addSign("▸", "", "folded, ▾ unfolded");
  if (raw.addresses.some((text) => text.split(" ")[0].length > MOST_LETTERS)) {
    addSign("…", "", "the end of a longer address");
  }
}

function fillLegend() {
  const used = new Set();
  raw.links.inner.forEach(({ words }) => words.forEach((line) => [...line].forEach((digit) => used.add(Number(digit)))));
  if (table.servers.length > 1) {
    (raw.links.across ?? []).forEach((line) => [...line].forEach((digit) => used.add(Number(digit))));
  }
  raw.links.words.forEach(([word, meaning], index) => {
    if (used.has(index) && index !== 0) {
      const item = make("li");
      item.append(make("span", `bar-of ${word}`, word), ` ${meaning}`);
      document.getElementById("legend").append(item);
    }
  });
}
