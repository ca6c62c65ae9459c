/* All servers at a glance: one cell for each, in the order of the table, with the worst of its marks. */

/* With more servers, a cell stands for several. */
const MOST_OVERVIEW_CELLS = 1024;
const FEWEST_SERVERS = 17;
const overview = document.getElementById("overview");
const PER_LINE = [8, 16, 32, 64];

/* Cells in a line: so many that there are about four times as many in a line as lines. */
function cellsPerLine(number) {
  return PER_LINE.find((size) => size * size >= 4 * number) ?? PER_LINE[PER_LINE.length - 1];
}

/* The servers of a cell. */
function serversOfCell(cell) {
  const [low, high] = cell.dataset.servers.split(" ").map(Number);
  return Array.from({ length: high - low }, (_, place) => low + place);
}

function overviewCell(low, high) {
  const cell = make("span", "cell");
  cell.dataset.servers = `${low} ${high}`;
  const [worst] = kindsIn(serversOfCell(cell));
  if (worst) {
    cell.classList.add(worst);
    cell.textContent = SYMBOLS[worst];
    nameCell(cell);
  }
  return cell;
}

/* The kinds of the marks in servers, the most important first. */
function kindsIn(servers) {
  const found = servers.flatMap((server) => marks.inServer.get(server)?.kinds ?? []);
  return KINDS.filter((kind) => found.includes(kind));
}

/* Of many cells, few are pointed at. */
function nameCell(cell) {
  const servers = serversOfCell(cell);
  const kinds = kindsIn(servers).map((kind) => raw.kinds[kind]);
  const last = servers.length > 1 ? ` to ${table.servers[servers[servers.length - 1]]}` : "";
  const marked = kinds.length ? `: ${kinds.join(", ")}` : "";
  cell.title = `${table.servers[servers[0]]}${last}, ${ranksOf(servers)}${marked}`;
}

/* Screen readers have the boxes, which say the same. */
function fillOverview() {
  const number = table.servers.length;
  if (number < FEWEST_SERVERS) {
    return;
  }
  const perCell = Math.ceil(number / MOST_OVERVIEW_CELLS);
  const perLine = cellsPerLine(Math.ceil(number / perCell));
  const grid = make("div", "cells");
  grid.style.gridTemplateColumns = `max-content repeat(${perLine}, minmax(3px, 26px))`;
  for (let start = 0; start < number; start += perCell * perLine) {
    grid.append(make("span", "scale", `${table.rankName(table.starts[start])}`));
    for (let place = 0; place < perLine; place += 1) {
      const low = start + place * perCell;
      grid.append(low < number ? overviewCell(low, Math.min(low + perCell, number)) : make("span", ""));
    }
  }
  const size = perCell === 1 ? "a cell each" : `${perCell} in a cell`;
  const words = marks.inServer.size ? `${counted(marks.inServer.size, "server")} marked` : "none is marked";
  const head = `${counted(number, "server")}, ${size}, ${perLine} cells in a line after its first rank; ${words}`;
  overview.append(make("p", "between", head), grid);
  overview.setAttribute("aria-hidden", "true");
  overview.hidden = false;
}

overview.addEventListener("mouseover", (event) => {
  const cell = event.target.closest(".cell");
  if (cell) {
    nameCell(cell);
  }
});

/* A cell leads to its first server that is marked, else to its first one. */
overview.addEventListener("click", (event) => {
  const cell = event.target.closest(".cell");
  if (cell) {
    const servers = serversOfCell(cell);
    const box = reveal(servers.find((server) => marks.inServer.has(server)) ?? servers[0]);
    unfold(box);
    go(box);
  }
});
