/* All servers at a glance: one cell for each, in the order of the table, with the worst of its marks. */

const MOST_CELL_SERVERS = 20000;
const FEWEST_CELL_SERVERS = 17;
const overview = document.getElementById("overview");
const PER_LINE = [8, 16, 32, 64, 128];

/* Cells in a line: so many that there are about four times as many in a line as lines. */
function cellsPerLine(number) {
  return PER_LINE.find((size) => size * size >= 4 * number) ?? PER_LINE[PER_LINE.length - 1];
}

function overviewCell(server) {
  const cell = make("span", "cell");
  cell.dataset.server = server;
  const found = marks.inServer.get(server);
  if (found) {
    cell.classList.add(found.kind);
    cell.textContent = SYMBOLS[found.kind];
    nameCell(cell);
  }
  return cell;
}

/* Of thousands of cells, few are pointed at. */
function nameCell(cell) {
  const server = Number(cell.dataset.server);
  const kinds = (marks.inServer.get(server)?.kinds ?? []).map((kind) => raw.kinds[kind]);
  cell.title = `${table.servers[server]}, ${ranksOf([server])}${kinds.length ? `: ${kinds.join(", ")}` : ""}`;
}

/* Screen readers have the boxes, which say the same. */
function fillOverview() {
  const number = table.servers.length;
  if (number < FEWEST_CELL_SERVERS || number > MOST_CELL_SERVERS) {
    return;
  }
  const perLine = cellsPerLine(number);
  const grid = make("div", "cells");
  grid.style.gridTemplateColumns = `max-content repeat(${perLine}, minmax(5px, 26px))`;
  for (let start = 0; start < number; start += perLine) {
    grid.append(make("span", "scale", `${table.rankName(table.starts[start])}`));
    for (let server = start; server < Math.min(start + perLine, number); server += 1) {
      grid.append(overviewCell(server));
    }
    if (number - start > perLine) {
      continue;
    }
    for (let empty = number - start; empty < perLine; empty += 1) {
      grid.append(make("span", ""));
    }
  }
  const marked = marks.inServer.size;
  const words = marked ? `${counted(marked, "server")} marked` : "none is marked";
  overview.append(
    make("p", "between", `${counted(number, "server")}, a cell each, ${perLine} in a line after its first rank; ${words}`),
    grid,
  );
  overview.setAttribute("aria-hidden", "true");
  overview.hidden = false;
  overview.addEventListener("mouseover", (event) => {
    const cell = event.target.closest("[data-server]");
    if (cell) {
      nameCell(cell);
    }
  });
  overview.addEventListener("click", (event) => {
    const cell = event.target.closest("[data-server]");
    if (cell) {
      const box = reveal(Number(cell.dataset.server));
      unfold(box);
      go(box);
    }
  });
}
