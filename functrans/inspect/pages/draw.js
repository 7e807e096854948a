(() => {
  function ready(root) {
    const place = root.querySelector(".picture"), svg = place && place.querySelector("svg");
    if (!svg) return;
    const width = svg.width.baseVal.value;
    let scale = 0, hits = [], at = -1;  // 0: as wide as there is room
    svg.style.maxWidth = "none";
    const fit = () => Math.min(1, (place.clientWidth - 4) / width) || 1;
    const show = () => { svg.style.width = `${width * (scale || fit())}px`; };
    const zoom = (by, x, y) => {
      const old = scale || fit();
      scale = by ? Math.max(0.05, Math.min(4, old * by)) : 0;
      const part = (scale || fit()) / old;
      show();
      place.scrollLeft = (place.scrollLeft + x) * part - x;
      place.scrollTop = (place.scrollTop + y) * part - y;
    };
    for (const button of root.querySelectorAll("[data-zoom]"))
      button.addEventListener("click", () =>
        zoom(Number(button.dataset.zoom), place.clientWidth / 2, place.clientHeight / 2));
    place.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = place.getBoundingClientRect();
      zoom(event.deltaY < 0 ? 1.15 : 0.87, event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    let from = null;
    place.addEventListener("pointerdown", (event) => {
      from = [event.clientX + place.scrollLeft, event.clientY + place.scrollTop];
    });
    place.addEventListener("pointermove", (event) => {
      if (!from || !event.buttons) return;
      place.scrollLeft = from[0] - event.clientX;
      place.scrollTop = from[1] - event.clientY;
    });
    const input = root.querySelector("[data-find]"), told = root.querySelector("[data-found]");
    const text = (box) => [...box.children].filter((c) => c.tagName === "text" || c.tagName === "title")
      .map((c) => c.textContent).join(" ").toLowerCase();
    const boxes = [...svg.querySelectorAll("g.b")].map((box) => [box, text(box)]);
    const go = (to) => {
      if (!hits.length) return;
      at = (to + hits.length) % hits.length;
      if (!scale && fit() < 0.7) { scale = 0.8; show(); }
      const hit = hits[at].getBoundingClientRect(), box = place.getBoundingClientRect();
      place.scrollLeft += hit.left - box.left - (box.width - hit.width) / 2;
      place.scrollTop += hit.top - box.top - (box.height - hit.height) / 2;
      told.textContent = `${at + 1} of ${hits.length}`;
    };
    input.addEventListener("input", () => {
      const word = input.value.trim().toLowerCase();
      hits = [];
      for (const [box, all] of boxes) {
        const hit = word && all.includes(word);
        box.classList.toggle("hit", Boolean(hit));
        if (hit) hits.push(box);
      }
      told.textContent = word ? `${hits.length} found` : "";
      go(0);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") go(at + (event.shiftKey ? -1 : 1));
    });
    root.querySelector("[data-next]").addEventListener("click", () => go(at + 1));
    show();
  }
  for (const root of document.querySelectorAll(".ft-view[role=region]:not([data-ready])")) {
    root.dataset.ready = "";
    ready(root);
  }
})();
