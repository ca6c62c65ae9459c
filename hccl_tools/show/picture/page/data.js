"use strict";
/* The table: its columns as written by page_data.py, and what is looked up in them. */

const raw = JSON.parse(document.getElementById("data").textContent);

/* The n-th value of a column in which one value may stand for all. */
function shared(column, index) {
  return Array.isArray(column) ? column[index] : column;
}

const table = {
  servers: raw.servers,
  starts: new Int32Array(raw.servers.length + 1),
};
for (let index = 0; index < raw.servers.length; index += 1) {
  table.starts[index + 1] = table.starts[index] + shared(raw.sizes, index);
}
table.size = table.starts[raw.servers.length];

table.lines = (() => {
  if (raw.lines === null) {
    return null;
  }
  let line = 0;
  return Int32Array.from(raw.lines, (step) => (line += step));
})();

/* The server of a device. */
table.serverOf = (device) => {
  let low = 0;
  let high = table.servers.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (table.starts[middle] <= device) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
};

table.rank = (device) => (raw.ranks === null ? device : raw.ranks[device]);

table.id = (device) =>
  Array.isArray(raw.devices)
    ? raw.devices[device - table.starts[table.serverOf(device)]]
    : raw.devices.all[device];

table.devicesOf = (server) =>
  Array.from({ length: table.starts[server + 1] - table.starts[server] }, (_, n) => table.starts[server] + n);

table.podOf = (server) => shared(raw.podOf, server);

table.rankName = (device) => table.rank(device) ?? "?";
table.idName = (device) => `NPU${table.id(device) ?? "?"}`;

/* The servers of each super pod; one entry for a table without super pods. */
table.pods = (() => {
  const found = raw.pods.map((name) => ({ name, servers: [] }));
  const others = { name: null, servers: [] };
  raw.servers.forEach((_, index) => (found[table.podOf(index)] ?? others).servers.push(index));
  return others.servers.length ? [...found, others] : found;
})();

/* Numbers as ranges: 0-3,8. */
function folded(numbers) {
  const spans = [];
  for (const number of numbers) {
    const last = spans[spans.length - 1];
    if (last && number === last[1] + 1) {
      last[1] = number;
    } else {
      spans.push([number, number]);
    }
  }
  const shown = spans.slice(0, 6).map(([low, high]) => (low === high ? `${low}` : `${low}-${high}`));
  return shown.join(",") + (spans.length > 6 ? ",…" : "");
}

/* The ranks of servers, as text. */
function ranksOf(servers) {
  const ranks = [];
  for (const server of servers) {
    for (let device = table.starts[server]; device < table.starts[server + 1]; device += 1) {
      ranks.push(table.rank(device));
    }
  }
  const known = ranks.filter((rank) => rank !== null).sort((one, other) => one - other);
  return `rank${known.length === 1 ? "" : "s"} ${folded(known)}`;
}

function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/* The index of the word for the link of two devices; null if it is not in the page. */
table.link = (one, other) => {
  if (one === other) {
    return 0;
  }
  const server = table.serverOf(one);
  const start = table.starts[server];
  if (other >= start && other < table.starts[server + 1]) {
    const inner = raw.links.inner[shared(raw.links.innerOf, server)];
    return inner ? Number(inner.words[one - start][other - start]) : null;
  }
  if (raw.links.across === null) {
    return null;
  }
  return Number(raw.links.across[shared(raw.links.outerOf, one)][shared(raw.links.outerOf, other)]);
};

/* The words for the links between servers with different homes (servers or super pods), as in the legend. */
table.between = (servers, homeOf) => {
  if (raw.links.across === null) {
    return "";
  }
  const homes = new Map(); // class -> its home, or null if it has several
  for (const server of servers) {
    for (let device = table.starts[server]; device < table.starts[server + 1]; device += 1) {
      const own = shared(raw.links.outerOf, device);
      homes.set(own, homes.has(own) && homes.get(own) !== homeOf(server) ? null : homeOf(server));
    }
  }
  const found = new Set();
  for (const [one, home] of homes) {
    for (const [other, place] of homes) {
      if (home === null || home !== place) {
        found.add(Number(raw.links.across[one][other]));
      }
    }
  }
  return [...found].sort((one, other) => one - other).map((word) => raw.links.words[word][0]).join("/");
};
