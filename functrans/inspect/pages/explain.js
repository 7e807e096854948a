(() => {
  // what belongs together is lit together: `data-own` says what an element is, `data-t` what it
  // belongs to; a click keeps it lit
  const words = (el, name) => (el.dataset[name] || "").split(" ").filter(Boolean);
  const meets = (a, b) => a.some((x) => b.includes(x));

  function link(root) {
    const all = [...root.querySelectorAll("[data-own],[data-t]")];
    const by = new Map();
    for (const el of all)
      for (const word of [...words(el, "own"), ...words(el, "t")])
        by.set(word, [...(by.get(word) || []), el]);
    const related = (el) => {
      const own = words(el, "own"), to = words(el, "t");
      const found = new Set([el]);
      for (const word of own) for (const other of by.get(word) || []) found.add(other);
      for (const word of to)
        for (const other of by.get(word) || []) if (meets(words(other, "own"), to)) found.add(other);
      // instructions of the lines that are lit; of an instruction what its line is for, too
      const far = el.closest(".asm") ? "t" : "own";
      for (const line of [...found])
        if (line !== el && /^k\d+c/.test(line.dataset.own || ""))
          for (const word of words(line, far))
            for (const other of by.get(word) || [])
              if (far === "own" || words(other, "own").includes(word)) found.add(other);
      return found;
    };
    let lit = new Set(), pinned = new Set();
    const show = (set, old, name) => {
      for (const el of old) el.classList.remove(name);
      for (const el of set) el.classList.add(name);
      return set;
    };
    const at = (event) => event.target.closest && event.target.closest("[data-own],[data-t]");
    root.addEventListener("pointerover", (event) => {
      const el = at(event);
      lit = show(el ? related(el) : new Set(), lit, "lit");
    });
    root.addEventListener("pointerleave", () => { lit = show(new Set(), lit, "lit"); });
    root.addEventListener("click", (event) => {
      const to = event.target.closest && event.target.closest("a[data-open]");
      if (to) {
        event.preventDefault();
        const goal = root.querySelector(`[data-name="${to.dataset.open}"]`);
        if (!goal) return;
        for (let el = goal; el && el !== root; el = el.parentElement)
          if (el.tagName === "DETAILS") el.open = true;
        goal.scrollIntoView({ block: "center" });
        return;
      }
      const el = at(event);
      if (!el) return;
      pinned = show(pinned.has(el) ? new Set() : related(el), pinned, "pin");
      // the other columns of the step show what belongs to it
      const own = el.closest(".code > div");
      for (const column of own ? own.parentElement.children : []) {
        const first = column !== own && column.querySelector(".src .pin, .e .e.pin, .e.pin, .lp.pin");
        if (!first || !first.offsetParent) continue;
        const [box, seen] = [first.getBoundingClientRect(), column.getBoundingClientRect()];
        if (box.top < seen.top || box.bottom > seen.bottom)
          column.scrollTop += box.top - seen.top - seen.height / 3;
      }
    });
  }

  function search(root) {
    const input = root.querySelector("input[data-search]");
    if (!input) return;
    const rows = [...root.querySelectorAll(".e, .ln, .kernel")];
    const count = root.querySelector("[data-found]");
    input.addEventListener("input", () => {
      const text = input.value.trim().toLowerCase();
      let found = 0;
      for (const row of rows) {
        const hit = !text || row.textContent.toLowerCase().includes(text);
        row.hidden = !hit;
        if (text && hit) {
          found++;
          for (let el = row.parentElement; el && el !== root; el = el.parentElement)
            if (el.tagName === "DETAILS") el.open = true;
        }
      }
      count.textContent = text ? `${found} found` : "";
    });
  }

  function stepping(root) {
    const place = root.querySelector("[data-stepping]");
    const source = root.querySelector('script[data-ft="passes"]');
    if (!place || !source) return;
    const { lines, passes } = JSON.parse(source.textContent);
    let at = 0, rewrite = -1, whole = new Set();
    const make = (tag, text, kind) => {
      const el = document.createElement(tag);
      if (text) el.textContent = text;
      if (kind) el.className = kind;
      return el;
    };
    const button = (text, label, go) => {
      const el = make("button", text);
      el.type = "button";
      el.setAttribute("aria-label", label);
      el.addEventListener("click", go);
      return el;
    };
    const cell = (id, kind, side, number) => {
      const el = make("div", "", `m ${kind}`);
      if (id !== null) {
        el.innerHTML = lines[id];
        el.dataset.row = side + number;
      }
      return el;
    };
    function go(pass, which) {
      if (pass !== at) whole = new Set();
      at = Math.max(0, Math.min(passes.length - 1, pass));
      const count = passes[at].rewrites.length;
      rewrite = Math.max(-1, Math.min(count - 1, which));
      draw();
    }
    function forward() {
      if (rewrite + 1 < passes[at].rewrites.length) go(at, rewrite + 1);
      else if (at + 1 < passes.length) go(at + 1, -1);
    }
    function back() {
      if (rewrite >= 0) go(at, rewrite - 1);
      else if (at > 0) go(at - 1, passes[at - 1].rewrites.length - 1);
    }
    function draw() {
      const pass = passes[at];
      const ofSchedule = pass.of === "schedule";
      const what = ofSchedule ? "decisions" : "rewrites";
      const nav = make("div", "", "steps");
      nav.append(
        button("previous step", "previous step", () => go(at - 1, -1)),
        button("◀ back", "one rewrite back", back),
        button("forward ▶", "one rewrite forward", forward),
        button("next step", "next step", () => go(at + 1, -1)));
      passes.forEach((p, k) => {
        if (k && p.of !== passes[k - 1].of) nav.append(make("span", "then the schedule", "dim"));
        const el = button(`${k + 1}`, p.title, () => go(k, -1));
        el.title = p.title;
        if (k === at) el.setAttribute("aria-current", "step");
        nav.append(el);
      });
      const title = make("div");
      title.append(make("b", pass.title));
      const told = make("div", "", "m");
      told.setAttribute("aria-live", "polite");
      const now = pass.rewrites[rewrite];
      if (now) told.append(
        make("span", `${rewrite + 1} of ${pass.rewrites.length}  `, "dim"),
        make("span", now.law, "p"), make("span", now.line ? `  ${now.line}` : "", "dim"),
        make("div", now.after ? `${now.before}  →  ${now.after}` : now.before));
      else told.append(make("span", pass.rewrites.length
        ? `${pass.rewrites.length} ${what}: forward steps through them (also the arrow keys)`
        : "it notes no single rewrites: its result is shown", "dim"));
      const side = make("div", "", "side");
      side.append(make("b", "before"), make("b", "after"));
      pass.parts.forEach(([kind, a, b, c, d], k) => {
        const same = kind === "equal";
        if (same && b - a > 7 && !whole.has(k)) {
          const rows = [...Array(b - a).keys()];
          const add = (i) => side.append(
            cell(pass.before[a + i], "", "b", a + i), cell(pass.after[c + i], "", "a", c + i));
          rows.slice(0, 2).forEach(add);
          const skip = make("div", "", "skip");
          skip.append(button(`⋯ ${b - a - 4} ${ofSchedule ? "lines" : "equations"} as they were`, "show them",
                             () => { whole.add(k); draw(); }));
          side.append(skip);
          rows.slice(-2).forEach(add);
          return;
        }
        for (let i = 0; i < Math.max(b - a, d - c); i++) {
          side.append(
            a + i < b ? cell(pass.before[a + i], same ? "" : "del", "b", a + i) : make("div"),
            c + i < d ? cell(pass.after[c + i], same ? "" : "add", "a", c + i) : make("div"));
        }
      });
      if (now) {
        const rows = [...now.from.map((n) => `b${n}`), ...now.to.map((n) => `a${n}`)];
        for (const row of rows) {
          const el = side.querySelector(`[data-row="${row}"]`);
          if (el) el.classList.add("on");
        }
      }
      const focused = place.contains(document.activeElement)
        ? document.activeElement.getAttribute("aria-label") : null;
      place.replaceChildren(nav, title, told, side);
      if (focused) {
        const el = place.querySelector(`[aria-label="${CSS.escape(focused)}"]`);
        if (el) el.focus({ preventScroll: true });
      }
    }
    place.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight") forward();
      else if (event.key === "ArrowLeft") back();
      else return;
      event.preventDefault();
    });
    draw();
  }

  for (const root of document.querySelectorAll(".ft-view[role=region]:not([data-ready])")) {
    root.dataset.ready = "";
    link(root);
    search(root);
    stepping(root);
  }
})();
