// Drives the page's charts and writes what it saw into the document.
(() => {
  const seen = {};
  const view = document.querySelector(innerWidth > 600 ? "#f0-cdf .wide" : "#f0-cdf .narrow");
  const key = view.querySelector(".key");
  const path = view.querySelector('path[data-name][data-s="' + key.dataset.s + '"]');
  const shown = () => getComputedStyle(path).display !== "none";
  seen.before = shown();
  key.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  seen.off = shown();
  key.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  seen.on = shown();
  const plot = view.querySelector(".plot");
  const box = view.querySelector("svg.chart").getBoundingClientRect();
  const at = (share, type) => plot.dispatchEvent(new PointerEvent(type, {
    clientX: box.left + box.width * share, clientY: box.top + box.height / 2,
    pointerType: "mouse", button: 0, bubbles: true,
  }));
  plot.setPointerCapture = () => {};
  at(0.6, "pointermove");
  seen.readout = document.querySelectorAll(".readout span").length;
  seen.head = document.querySelector(".readout b").textContent;
  const labels = () => Array.from(view.querySelectorAll(".xaxis text")).map((t) => t.textContent).join(" ");
  const whole = labels();
  at(0.4, "pointerdown"); at(0.7, "pointermove"); at(0.7, "pointerup");
  seen.zoomed = labels() !== whole;
  document.querySelector("button.reset").click();
  seen.reset = labels() === whole;
  // What would be saved: pictures that are XML by themselves, and numbers.
  const saved = [];
  URL.createObjectURL = (blob) => (saved.push(blob.type), "#");
  const Plain = Blob;
  Blob = class extends Plain {
    constructor(parts, options) {
      super(parts, options);
      // What is unpacked is of no type.
      if (!options) return;
      const text = parts.join("");
      if (options.type === "application/json") {
        // It comes after everything else.
        const rows = JSON.parse(text).layer.flatMap((layer) => layer.data.values);
        const names = new Set(rows.map((row) => row.series).filter((name) => name));
        document.documentElement.setAttribute("data-spec", Array.from(names).join(" "));
      } else if (options.type === "text/csv") seen.lines = text.trim().split("\r\n").length;
      else {
        const read = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
        seen.drawn = read.tagName + " " + (read.querySelectorAll("path").length > 2) + " " + (read.getAttribute("width") > 100);
      }
    }
  };
  const buttons = Array.from(view.closest("figure").querySelectorAll(".save button"));
  seen.buttons = buttons.map((b) => b.textContent).join(" ");
  // Printing would wait for somebody.
  buttons.filter((b) => b.textContent !== "PDF").forEach((b) => b.click());
  seen.saved = saved.join(" ");
  seen.rows = view.closest("figure").querySelectorAll("details tr").length === seen.lines;
  seen.requests = performance.getEntriesByType("resource").length;
  seen.narrow = getComputedStyle(document.querySelector(".narrow")).display;
  seen.overflow = document.documentElement.scrollWidth > window.innerWidth;
  document.documentElement.setAttribute("data-seen", JSON.stringify(seen));
})();
