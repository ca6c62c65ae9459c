/* The keyboard: one box of the picture is in the tab order, the arrow keys move from box to box. */

let current = null;

function select(box) {
  if (current) {
    current.head.tabIndex = -1;
  }
  current = box;
  box.head.tabIndex = 0;
  showDetails(box);
}

function go(box) {
  select(box);
  box.head.focus();
  box.head.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function visibleHeads() {
  return [...picture.querySelectorAll("[data-box]")].filter((head) => head.offsetParent !== null);
}

function neighbour(key) {
  const heads = visibleHeads();
  const at = heads.indexOf(current.head);
  if (key === "Home") {
    return heads[0];
  }
  if (key === "End") {
    return heads[heads.length - 1];
  }
  if (key === "ArrowRight") {
    return heads[at + 1];
  }
  return key === "ArrowLeft" ? heads[at - 1] : nearest(heads, key === "ArrowDown" ? 1 : -1);
}

/* The nearest box that is lower (1) or higher (-1) and overlaps the least sideways distance. */
function nearest(heads, way) {
  const own = current.head.getBoundingClientRect();
  let found = null;
  let least = Infinity;
  for (const head of heads) {
    const box = head.getBoundingClientRect();
    const down = way * (box.top - own.top);
    const aside = Math.max(box.left - own.right, own.left - box.right, 0);
    if (down > 4 && down + 3 * aside < least) {
      least = down + 3 * aside;
      found = head;
    }
  }
  return found;
}

picture.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) {
    return;
  }
  const zoom = { "+": zoomIn, "=": zoomIn, "-": zoomOut, 0: zoomNormal }[event.key];
  if (zoom) {
    zoom();
  } else if (event.key === "Escape" && current.around) {
    go(current.around);
  } else if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") {
    const head = neighbour(event.key);
    if (head) {
      go(boxes.get(head.dataset.box));
    }
  } else {
    return;
  }
  event.preventDefault();
});

picture.addEventListener("click", (event) => {
  const head = event.target.closest("[data-box]");
  if (head) {
    const box = boxes.get(head.dataset.box);
    select(box);
    if (box.kind !== "device") {
      (isOpen(box) ? fold : unfold)(box);
    }
  }
});

picture.addEventListener("focusin", (event) => {
  const head = event.target.closest("[data-box]");
  if (head && boxes.get(head.dataset.box) !== current) {
    select(boxes.get(head.dataset.box));
  }
});

picture.addEventListener("mouseover", (event) => {
  const head = event.target.closest("[data-box]");
  if (head) {
    showDetails(boxes.get(head.dataset.box));
  }
});

picture.addEventListener("mouseleave", () => showDetails(current));

/* The arrow keys move from the selected box, wherever the focus is, but in a field and in the links. */
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input")) {
    return;
  }
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("query").focus();
  } else if (event.key.startsWith("Arrow") && !part.hidden && !event.target.closest("#side, [data-box]")) {
    event.preventDefault();
    const head = neighbour(event.key) ?? current.head;
    go(boxes.get(head.dataset.box));
  }
});
