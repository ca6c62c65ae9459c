/* Find devices, servers and notes: by rank, device id, address, server, super device id, or rule. */

const MOST_RESULTS = 30;

const searchable = {
  addresses: null,
  servers: null,
};

function prepareSearch() {
  searchable.addresses ??= raw.addresses.map((text) => text.toLowerCase());
  searchable.servers ??= table.servers.map((text) => text.toLowerCase());
}

/* Results and their number; each has a kind, an index and a text. */
function search(query) {
  const text = query.trim().toLowerCase();
  const exact = [];
  const similar = [];
  if (!text) {
    return { hits: [], total: 0 };
  }
  prepareSearch();
  const ranked = /^(?:rank\s*)?(\d+)$/.exec(text);
  const numbered = /^(?:npu|device)\s*(\d+)$/.exec(text);
  if (ranked) {
    searchRank(Number(ranked[1]), exact);
  }
  if (numbered) {
    searchId(Number(numbered[1]), exact);
  }
  if (!numbered && !text.startsWith("rank")) {
    searchServers(text, exact, similar);
    searchAddresses(text, exact, similar);
    searchNotes(text, exact, similar);
  }
  const hits = [...exact, ...similar];
  return { hits: hits.slice(0, MOST_RESULTS), total: hits.length };
}

function searchRank(rank, exact) {
  if (raw.ranks === null) {
    if (rank < table.size) {
      exact.push({ kind: "device", index: rank });
    }
    return;
  }
  for (let device = 0; device < table.size; device += 1) {
    if (raw.ranks[device] === rank) {
      exact.push({ kind: "device", index: device });
    }
  }
}

function searchId(id, exact) {
  for (let server = 0; server < table.servers.length; server += 1) {
    for (let device = table.starts[server]; device < table.starts[server + 1]; device += 1) {
      const own = Array.isArray(raw.devices) ? raw.devices[device - table.starts[server]] : raw.devices.all[device];
      if (own === id) {
        exact.push({ kind: "device", index: device });
      }
    }
  }
}

function searchServers(text, exact, similar) {
  searchable.servers.forEach((name, index) => {
    if (name.includes(text)) {
      (name === text ? exact : similar).push({ kind: "server", index });
    }
  });
}

function searchAddresses(text, exact, similar) {
  searchable.addresses.forEach((own, index) => {
    if (own.includes(text)) {
      (own.split(" ").includes(text) ? exact : similar).push({ kind: "device", index });
    } else if (raw.superDevices !== null && raw.superDevices[index] === text) {
      exact.push({ kind: "device", index });
    }
  });
}

function searchNotes(text, exact, similar) {
  for (const note of raw.notes) {
    if (note.label.toLowerCase() === text) {
      exact.push({ kind: "note", note });
    } else if (note.marks[0].sentence.toLowerCase().includes(text) || note.kind === text) {
      similar.push({ kind: "note", note });
    }
  }
}

function resultText(hit) {
  if (hit.kind === "device") {
    return `rank ${table.rankName(hit.index)}, ${table.idName(hit.index)}, ${table.servers[table.serverOf(hit.index)]}`;
  }
  return hit.kind === "server" ? `server ${table.servers[hit.index]}` : `${hit.note.label} ${hit.note.kind}`;
}
