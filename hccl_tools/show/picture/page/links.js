/* The second view: rank by rank, in blocks per server, by kind of link. */

const MOST_CELLS = 64; // ranks in a row, and in a column
const linksPart = document.getElementById("links");
const shownLinks = { rows: 0, columns: 0 };

/* The servers from one on that fit in the table. */
function serversFrom(first) {
  const found = [];
  let ranks = 0;
  for (let server = first; server < table.servers.length; server += 1) {
    ranks += table.starts[server + 1] - table.starts[server];
    if (found.length && ranks > MOST_CELLS) {
      break;
    }
    found.push(server);
  }
  return found;
}

function devicesFrom(servers) {
  return servers.flatMap((server) => table.devicesOf(server).slice(0, MOST_CELLS));
}

function chooser(name, which) {
  const label = make("label", "", `${name} `);
  const input = make("input");
  input.type = "number";
  input.min = "1";
  input.max = `${table.servers.length}`;
  input.value = `${shownLinks[which] + 1}`;
  input.addEventListener("change", () => {
    const wanted = Math.round(Number(input.value)) - 1;
    shownLinks[which] = Math.min(Math.max(wanted, 0), table.servers.length - 1);
    drawLinks();
    linksPart.querySelector(`[name=${which}]`).focus();
  });
  input.name = which;
  label.append(input);
  return label;
}

function isFirst(device) {
  return table.starts[table.serverOf(device)] === device;
}

function linkCell(one, other) {
  const word = table.link(one, other);
  const name = word === null ? "" : raw.links.words[word][0];
  const cell = make("td", `k${name} ${isFirst(other) ? "first" : ""}`, name);
  const failed = marks.failed.get(`${one} ${other}`);
  if (failed) {
    cell.classList.add("failed", failed);
    cell.textContent = `${SYMBOLS[failed]} ${name}`;
  }
  cell.title = `rank ${table.rankName(one)} to rank ${table.rankName(other)}: ${name || "not in this page, use -f matrix"}`;
  return cell;
}

function headRows(servers, devices) {
  const names = make("tr");
  const corner = make("td");
  corner.colSpan = 2;
  corner.rowSpan = 2;
  names.append(corner);
  for (const server of servers) {
    const head = make("th", "server first", table.servers[server]);
    head.colSpan = devices.filter((device) => table.serverOf(device) === server).length;
    head.scope = "colgroup";
    names.append(head);
  }
  const ranks = make("tr");
  for (const device of devices) {
    const head = make("th", isFirst(device) ? "first" : "", `${table.rankName(device)}`);
    head.scope = "col";
    ranks.append(head);
  }
  const head = make("thead");
  head.append(names, ranks);
  return head;
}

function linkRow(device, rowServers, columns) {
  const row = make("tr", isFirst(device) ? "first" : "");
  const server = table.serverOf(device);
  if (isFirst(device)) {
    const name = make("th", "server", table.servers[server]);
    name.rowSpan = Math.min(table.starts[server + 1] - table.starts[server], MOST_CELLS);
    name.scope = "rowgroup";
    row.append(name);
  }
  const head = make("th", "", `${table.rankName(device)}`);
  head.scope = "row";
  row.append(head);
  columns.forEach((other) => row.append(linkCell(device, other)));
  return row;
}

function drawLinks() {
  const rowServers = serversFrom(shownLinks.rows);
  const columnServers = serversFrom(shownLinks.columns);
  const columns = devicesFrom(columnServers);
  const choose = make("div", "choose");
  if (rowServers.length < table.servers.length) {
    choose.append(chooser("Rows from server number", "rows"), chooser("Columns from server number", "columns"));
    choose.append(make("span", "", `of ${table.servers.length.toLocaleString("en")}`));
  }
  const grid = make("table");
  grid.append(make("caption", "", "How each rank communicates with each other one; a block is a pair of servers."));
  grid.append(headRows(columnServers, columns));
  const body = make("tbody");
  devicesFrom(rowServers).forEach((device) => body.append(linkRow(device, rowServers, columns)));
  grid.append(body);
  linksPart.replaceChildren(choose, grid);
}

/* Show the links from the server of a box on. */
function centreLinks(box) {
  shownLinks.rows = box.kind === "device" ? table.serverOf(box.device) : box.servers[0];
  shownLinks.columns = shownLinks.rows;
}
