// Read-outs, zoom and legend of the charts. Every number comes from the drawn paths and the axes
// written beside them, so the page holds its data once; without this script it is complete.
"use strict";
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const all = (root, selector) => Array.from(root.querySelectorAll(selector));
  const make = (name, attributes, parent) => {
    const node = document.createElementNS(NS, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (parent) parent.appendChild(node);
    return node;
  };

  // Units as the pictures write them: [size of the unit, its name], largest first.
  const UNITS = {
    duration: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
    bytes: [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
    rate: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
    share: [[0.01, "%"]],
  };
  const show = (value, quantity, digits = 3) => {
    if (!isFinite(value)) return "–";
    if (quantity === "ratio") return value.toFixed(2) + "×";
    const units = UNITS[quantity];
    if (!units) return String(Number(value.toPrecision(digits)));
    const size = Math.abs(value) * (1 + 1e-9);
    const unit = value === 0 ? units[0] : units.find((u) => size >= u[0]) || units[units.length - 1];
    return Number((value / unit[0]).toPrecision(digits)) + "\u00a0" + unit[1];
  };

  // An axis: from the attribute to functions between values and the share of its length.
  const axis = (text) => {
    const [scale, lo, hi, quantity, unit] = text.split(" ");
    const log = scale === "log";
    const a = log ? Math.log(lo) : Number(lo);
    const b = log ? Math.log(hi) : Number(hi);
    return {
      log, quantity, unit: Number(unit),
      value: (t) => (log ? Math.exp(a + t * (b - a)) : a + t * (b - a)),
      at: (v) => ((log ? Math.log(v) : v) - a) / (b - a),
    };
  };

  // Absolute M, L, H, V and Z, which is all that the pictures use.
  const points = (d) => {
    const out = [];
    let x = 0, y = 0;
    for (const [, command, rest] of d.matchAll(/([MLHVZ])([^MLHVZ]*)/g)) {
      const n = rest.trim().split(/[ ,]+/).map(Number);
      if (command === "Z") continue;
      if (command === "H") x = n[0];
      else if (command === "V") y = n[0];
      else [x, y] = n;
      out.push([x, y]);
    }
    return out;
  };

  // Height of a series at x, in plot pixels: the last corner at or before x for steps, a straight
  // line between neighbours otherwise. Areas go out along their upper edge and come back.
  const heightAt = (series, x) => {
    const p = series.points;
    if (!p.length) return NaN;
    if (series.kind === "poly") {
      const i = p.findIndex((q) => q[0] >= x);
      if (i < 0 || (i === 0 && p[0][0] > x + 3)) return NaN;
      if (i === 0) return p[0][1];
      const [a, b] = [p[i - 1], p[i]];
      return b[0] === a[0] ? b[1] : a[1] + ((b[1] - a[1]) * (x - a[0])) / (b[0] - a[0]);
    }
    if (series.kind === "step") {
      let y = p[0][1];
      for (const q of p) {
        if (q[0] > x) break;
        y = q[1];
      }
      return y;
    }
    return edges(series, x)[0];
  };

  // Heights of the level pieces of an area above x: the upper edge first, then the lower.
  const edges = (series, x) => {
    const out = [];
    const p = series.points;
    for (let i = 1; i < p.length && out.length < 2; i++) {
      const [a, b] = [p[i - 1], p[i]];
      if (a[1] === b[1] && a[0] !== b[0] && Math.min(a[0], b[0]) <= x && x < Math.max(a[0], b[0])) out.push(b[1]);
    }
    return out;
  };

  class Plot {
    constructor(node) {
      this.node = node;
      this.chart = node.closest("svg.chart");
      this.figure = node.closest("figure");
      this.x = axis(node.dataset.x);
      this.y = axis(node.dataset.y);
      this.height = Number(node.dataset.h);
      this.width = Number(node.getAttribute("width"));
      this.box = node.getAttribute("viewBox");
      this.left = Number(node.getAttribute("x"));
      this.bottom = Number(node.getAttribute("y")) + Number(node.getAttribute("height")) - 3;
      this.from = 0;
      this.to = 1;
      this.series = all(node, "path[data-name]").map((path) => ({
        path, name: path.dataset.name, kind: path.dataset.kind, points: points(path.getAttribute("d")),
      }));
      const frame = this.box.split(" ");
      this.target = make("rect", { x: 0, y: frame[1], width: frame[2], height: frame[3], fill: "transparent" });
      node.prepend(this.target);
      this.line = make("path", { class: "cursor", visibility: "hidden" }, node);
      this.shade = make("rect", { class: "drag", y: frame[1], height: frame[3], visibility: "hidden" }, node);
      this.ticks = this.chart.querySelector(".xaxis");
      this.drawn = this.ticks && Array.from(this.ticks.childNodes);
    }

    // Share of the axis under a pointer event.
    share(event) {
      const outer = this.chart.getBoundingClientRect();
      const scale = outer.width / this.chart.viewBox.baseVal.width;
      const t = ((event.clientX - outer.left) / scale - this.left) / this.width;
      return this.from + Math.min(1, Math.max(0, t)) * (this.to - this.from);
    }

    mark(t) {
      if (t === null || t < this.from || t > this.to) {
        this.line.setAttribute("visibility", "hidden");
        return;
      }
      const x = t * this.width;
      this.line.setAttribute("d", `M${x} 0V${this.height}`);
      this.line.setAttribute("visibility", "visible");
    }

    rows(t) {
      return this.series
        .filter((s) => !s.path.classList.contains("off"))
        .map((s) => [s.name, this.text(s, t * this.width)])
        .filter((row) => row[1]);
    }

    // What a series says at x: its own share of a stack, both ends of a range.
    text(series, x) {
      const value = (y) => this.y.value(1 - y / this.height);
      if (series.kind === "stack" || series.kind === "range") {
        const [top, bottom] = edges(series, x);
        if (bottom === undefined) return "";
        return series.kind === "stack"
          ? show(value(top) - value(bottom), this.y.quantity)
          : `${show(value(bottom), this.y.quantity)} … ${show(value(top), this.y.quantity)}`;
      }
      const y = heightAt(series, x);
      return y === undefined || isNaN(y) ? "" : show(value(y), this.y.quantity);
    }

    zoom(from, to) {
      this.from = from;
      this.to = to;
      const whole = from === 0 && to === 1;
      const [, top, width, height] = this.box.split(" ").map(Number);
      this.node.setAttribute("viewBox", whole ? this.box : `${from * width} ${top} ${(to - from) * width} ${height}`);
      if (this.ticks) this.ticks.replaceChildren(...(whole ? this.drawn : this.newTicks()));
    }

    newTicks() {
      const [lo, hi] = [this.x.value(this.from), this.x.value(this.to)];
      const raw = (hi - lo) / Math.max(2, this.width / 90);
      const power = 10 ** Math.floor(Math.log10(raw));
      const step = power * [1, 2, 5, 10].find((k) => k * power >= raw);
      const nodes = [];
      for (let k = Math.ceil(lo / step - 1e-9); k * step <= hi * (1 + 1e-9) && nodes.length < 60; k++) {
        const value = k * step;
        const px = this.left + ((this.x.at(value) - this.from) / (this.to - this.from)) * this.width;
        if (!isFinite(px)) continue;
        nodes.push(make("path", { class: "axis", d: `M${px} ${this.bottom}V${this.bottom + 5}` }));
        const label = make("text", { class: "tick", x: px, y: this.bottom + 18, "text-anchor": "middle" });
        label.textContent = this.x.log
          ? show(value, this.x.quantity, 4)
          : String(Number((value / this.x.unit).toPrecision(6)));
        nodes.push(label);
      }
      return nodes;
    }
  }

  const plots = all(document, "svg.plot").map((node) => new Plot(node));
  const linked = (plot) => plots.filter((p) => p === plot || (p.node.dataset.link && p.node.dataset.link === plot.node.dataset.link));

  // The read-out: one box per figure, beside the pointer.
  const readout = document.createElement("div");
  readout.className = "readout";
  readout.hidden = true;
  readout.setAttribute("aria-live", "polite");
  const place = (figure, event) => {
    figure.appendChild(readout);
    readout.hidden = false;
    const box = figure.getBoundingClientRect();
    const x = event.clientX - box.left + 14;
    const flip = x + readout.offsetWidth > box.width;
    readout.style.left = (flip ? Math.max(0, x - 28 - readout.offsetWidth) : x) + "px";
    readout.style.top = event.clientY - box.top + 14 + "px";
  };
  const write = (head, rows) => {
    const title = document.createElement("b");
    title.textContent = head;
    readout.replaceChildren(title, ...rows.map(([name, value]) => {
      const row = document.createElement("span");
      const label = document.createElement("i");
      label.textContent = name;
      row.append(label, value);
      return row;
    }));
  };
  const hide = () => {
    readout.hidden = true;
    plots.forEach((p) => p.mark(null));
  };

  const zoomAll = (plot, from, to) => {
    const group = linked(plot);
    group.forEach((p) => p.zoom(from, to));
    group.map((p) => p.figure).forEach((figure) => {
      const old = figure.querySelector("button.reset");
      if (old) old.remove();
      if (from === 0 && to === 1) return;
      const button = document.createElement("button");
      button.className = "reset";
      button.type = "button";
      button.textContent = "Reset zoom";
      button.addEventListener("click", () => zoomAll(plot, 0, 1));
      figure.appendChild(button);
    });
  };

  plots.forEach((plot) => {
    let start = null;
    const node = plot.node;
    node.addEventListener("pointermove", (event) => {
      const t = plot.share(event);
      linked(plot).forEach((p) => p.mark(t));
      // All strips of one chart speak together.
      const strips = plots.filter((p) => p.chart === plot.chart);
      const rows = strips.flatMap((p) => p.rows(t));
      write(show(plot.x.value(t), plot.x.quantity, 4), rows);
      place(plot.figure, event);
      if (start !== null) {
        plot.shade.setAttribute("x", Math.min(start, t) * plot.width);
        plot.shade.setAttribute("width", Math.abs(t - start) * plot.width);
        plot.shade.setAttribute("visibility", "visible");
      }
    });
    node.addEventListener("pointerleave", hide);
    node.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) {
        start = plot.share(event);
        node.setPointerCapture(event.pointerId);
        event.preventDefault();
      }
    });
    node.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const [from, to] = [start, plot.share(event)].sort((a, b) => a - b);
      start = null;
      plot.shade.setAttribute("visibility", "hidden");
      if ((to - from) * plot.width > 8 * (plot.to - plot.from)) zoomAll(plot, from, to);
    });
    node.addEventListener("dblclick", () => zoomAll(plot, 0, 1));
  });

  all(document, ".bar").forEach((bar) => {
    bar.addEventListener("pointermove", (event) => {
      write(bar.dataset.name, [[bar.dataset.text, ""]]);
      place(bar.closest("figure"), event);
    });
    bar.addEventListener("pointerleave", hide);
  });

  // The legend: pointing at a key sets its series off, a click hides it.
  all(document, ".key").forEach((key) => {
    const chart = key.closest("svg.chart");
    const of = (s) => all(chart, `[data-s="${s}"]`);
    const series = key.dataset.s;
    const toggle = () => {
      const off = !key.classList.contains("off");
      of(series).forEach((node) => node.classList.toggle("off", off));
      key.setAttribute("aria-pressed", String(!off));
    };
    const emphasise = (on) => all(chart, "[data-s]").forEach((node) => {
      if (!node.classList.contains("key")) node.classList.toggle("dim", on && node.dataset.s !== series);
    });
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.setAttribute("aria-pressed", "true");
    key.addEventListener("click", toggle);
    key.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        toggle();
      }
    });
    key.addEventListener("pointerenter", () => emphasise(true));
    key.addEventListener("pointerleave", () => emphasise(false));
  });

  // Downloads: the pictures of a figure as they stand, each with its style, and its numbers.
  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const drawing = (chart) => {
    const copy = chart.cloneNode(true);
    const { width, height } = chart.viewBox.baseVal;
    copy.setAttribute("xmlns", NS);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    const style = make("style", {});
    style.textContent = document.querySelector("style").textContent;
    copy.prepend(style);
    return new XMLSerializer().serializeToString(copy);
  };
  // Two pixels for each of the page's: sharp on a screen and in slides.
  const pixels = (chart, name) => {
    const { width, height } = chart.viewBox.baseVal;
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * width;
      canvas.height = 2 * height;
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(name, "image/png", blob));
    };
    image.src = `data:image/svg+xml,${encodeURIComponent(drawing(chart))}`;
  };
  // The browser's own printer makes a PDF: a page of the picture's size, with nothing else on it.
  const print = (charts) => {
    const frame = document.createElement("iframe");
    frame.style.cssText = "position:fixed;width:0;height:0;border:0";
    const size = charts[0].viewBox.baseVal;
    frame.srcdoc = `<!doctype html><style>@page{size:${size.width}px ${size.height}px;margin:0}body{margin:0}svg{display:block}</style>`
      + charts.map(drawing).join("");
    frame.onload = () => {
      // The name of the file, as text: names are anybody's.
      frame.contentDocument.title = document.title;
      frame.contentWindow.onafterprint = () => frame.remove();
      frame.contentWindow.print();
    };
    document.body.append(frame);
  };
  const numbers = (table) => all(table, "tr").map((row) => all(row, "th,td").map((cell) => {
    const parts = Array.from(cell.childNodes).map((node) => node.textContent.trim());
    return `"${parts.filter((text) => text).join(" ").replaceAll('"', '""')}"`;
  }).join(",")).join("\r\n") + "\r\n";
  all(document, "figure:not([data-empty])").forEach((figure) => {
    const bar = document.createElement("p");
    bar.className = "save";
    const button = (text, act) => {
      const node = document.createElement("button");
      node.type = "button";
      node.textContent = text;
      node.addEventListener("click", act);
      bar.append(node);
    };
    const shown = () => all(figure, "svg.chart").filter((chart) => chart.getBoundingClientRect().width > 0);
    const name = (i, ending) => `${figure.id}${i ? `-${i + 1}` : ""}.${ending}`;
    button("SVG", () => shown().forEach((chart, i) => save(name(i, "svg"), "image/svg+xml", drawing(chart))));
    button("PNG", () => shown().forEach((chart, i) => pixels(chart, name(i, "png"))));
    button("PDF", () => print(shown()));
    const table = figure.querySelector("details table");
    if (table) button("CSV", () => save(`${figure.id}.csv`, "text/csv", numbers(table)));
    // The specification is packed, for it holds every number of the picture; old browsers cannot unpack it.
    const packed = figure.dataset.vega;
    if (packed && window.DecompressionStream) {
      button("Vega-Lite", async () => {
        const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
        const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
        save(`${figure.id}.vl.json`, "application/json", await new Response(stream).text());
      });
    }
    figure.append(bar);
  });

  // The charts now hold buttons, so they are groups; and a title would pop up over the read-outs.
  all(document, "svg.chart").forEach((chart) => {
    const title = chart.querySelector(":scope > title");
    chart.setAttribute("role", "group");
    if (title) {
      chart.setAttribute("aria-label", title.textContent);
      chart.removeAttribute("aria-labelledby");
      title.remove();
    }
  });
  document.documentElement.classList.add("js");
})();
