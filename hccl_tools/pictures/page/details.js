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

function serverDetails(box) {
  const { servers } = box;
  addDetail(box.kind === "pod" ? "super pod" : "server", box.head.querySelector(".name").textContent);
  if (servers.length > 1) {
    addDetail("servers", servers.length.toLocaleString("en"));
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
