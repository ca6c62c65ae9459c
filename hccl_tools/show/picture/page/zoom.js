/* Zoom by the size of the letters, in which all boxes are measured; pan by dragging the background. */

const STEPS = [0.25, 0.35, 0.5, 0.6, 0.75, 0.9, 1, 1.15, 1.35, 1.6, 2, 2.5, 3];
const part = document.getElementById("boxes");
let step = STEPS.indexOf(1);

function zoomTo(wanted) {
  step = Math.min(Math.max(wanted, 0), STEPS.length - 1);
  picture.style.fontSize = `${STEPS[step]}em`;
  document.getElementById("normal").textContent = `${Math.round(STEPS[step] * 100)} %`;
}

const zoomIn = () => zoomTo(step + 1);
const zoomOut = () => zoomTo(step - 1);
const zoomNormal = () => zoomTo(STEPS.indexOf(1));

document.getElementById("larger").addEventListener("click", zoomIn);
document.getElementById("smaller").addEventListener("click", zoomOut);
document.getElementById("normal").addEventListener("click", zoomNormal);

part.addEventListener(
  "wheel",
  (event) => {
    if (event.ctrlKey) {
      event.preventDefault();
      (event.deltaY < 0 ? zoomIn : zoomOut)();
    }
  },
  { passive: false },
);

let drag = null;

part.addEventListener("pointerdown", (event) => {
  if (event.button === 0 && event.pointerType === "mouse" && !event.target.closest("button")) {
    drag = { x: event.clientX + part.scrollLeft, y: event.clientY + part.scrollTop };
    part.setPointerCapture(event.pointerId);
    part.classList.add("dragged");
  }
});

part.addEventListener("pointermove", (event) => {
  if (drag) {
    part.scrollTo(drag.x - event.clientX, drag.y - event.clientY);
  }
});

for (const end of ["pointerup", "pointercancel"]) {
  part.addEventListener(end, () => {
    drag = null;
    part.classList.remove("dragged");
  });
}
