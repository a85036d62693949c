"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const layout = data.layout;
  const SVG = "http://www.w3.org/2000/svg";
  const CHARACTER = 1.8;
  const SHORTEST_LABEL = 5;

  function stretches(text) {
    return text.split(" ").map(function (part) {
      const numbers = part.split("x").map(Number);
      return numbers.length === 2 ? numbers : [1, numbers[0]];
    });
  }

  function look(action) {
    return "url(#a" + (action % data.looks) + ")";
  }

  function shape(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function short(text, longest) {
    const letters = Array.from(text);
    return letters.length <= longest ? text : letters.slice(0, longest - 1).join("").trimEnd() + "…";
  }

  function cells(policy) {
    const wide = (100 - layout.left) / layout.columns;
    const made = [];
    let cell = 0;
    for (let [left, action] of stretches(policy)) {
      while (left > 0) {
        const row = Math.floor(cell / layout.columns);
        const column = cell % layout.columns;
        const taken = Math.min(left, layout.columns - column);
        made.push(shape("rect", {
          x: layout.left + column * wide + "%",
          width: taken * wide + "%",
          y: layout.top + row * layout.height,
          height: layout.height - (layout.rows > 1 ? 1 : 0),
          fill: look(action),
        }));
        cell += taken;
        left -= taken;
      }
    }
    return made;
  }

  function labels(policy) {
    const wide = 100 / layout.columns;
    const below = layout.top + layout.height + 16;
    const made = [];
    let first = 0;
    let written = -100;
    for (const [length, action] of stretches(policy)) {
      const start = first * wide;
      const width = length * wide;
      const room = Math.floor(width / CHARACTER) - 1;
      if (room >= Math.min(Array.from(data.actions[action]).length, SHORTEST_LABEL)) {
        made.push(shape("text", { x: start + "%", y: 14 }, short(data.actions[action], room)));
      }
      const text = data.boundaries[first];
      const size = Array.from(text).length * CHARACTER;
      const anchor = start < size / 2 ? "start" : start > 100 - size / 2 ? "end" : "middle";
      const edge = start - { start: 0, middle: size / 2, end: size }[anchor];
      if (edge >= written) {
        const place = { x: start + "%", y: below, "text-anchor": anchor, class: "tick" };
        made.push(shape("text", place, text));
        written = edge + size + CHARACTER;
      }
      first += length;
    }
    if (data.end && written <= 100 - Array.from(data.end).length * CHARACTER) {
      const place = { x: "100%", y: below, "text-anchor": "end", class: "tick" };
      made.push(shape("text", place, data.end));
    }
    return made;
  }

  function tiles(list, policy) {
    const actions = [];
    for (const [length, action] of stretches(policy)) {
      for (let i = 0; i < length; i++) actions.push(action);
    }
    list.querySelectorAll("li").forEach(function (entry, i) {
      entry.querySelector("rect").setAttribute("fill", look(actions[i]));
      entry.querySelector(".action bdi").textContent = data.actions[actions[i]];
    });
  }

  function turn(dial) {
    const section = document.getElementById(dial.id);
    const input = section.querySelector("input");
    const moving = section.querySelector(".moving");
    const picture = moving.querySelector(".policy");
    const cursors = section.querySelectorAll(".cursor");
    const counts = moving.querySelectorAll(".count");
    const start = Number(input.getAttribute("value"));
    const last = dial.stops.length - 1;

    function part(name, text) {
      section.querySelector('[data-part="' + name + '"]').textContent = text;
    }

    function show() {
      const stop = Number(input.value);
      const [level, number] = dial.stops[stop];
      const policy = dial.policies[number];
      let said = "recommended";
      if (number !== dial.recommended) {
        const states = policy.differs === 1 ? " state" : " states";
        said = "differs from the recommendation in " + policy.differs.toLocaleString("en") + states;
      }
      input.setAttribute("aria-valuetext", "level " + level + ", " + said);
      part("where", "Stop " + (stop + 1) + " of " + (last + 1) + ", level " + level + ": " + said);
      part("mean", policy.mean);
      part("interval", policy.interval);
      part("bound", policy.bound);
      part("words", policy.words);
      if (layout.kind === "tiles") {
        tiles(picture, policy.cells);
      } else {
        picture.querySelector("title").textContent = "Policy at level " + level;
        picture.querySelector("desc").textContent = policy.words;
        picture.querySelector(".cells").replaceChildren(...cells(policy.cells));
        const texts = picture.querySelector(".labels");
        if (texts) texts.replaceChildren(...labels(policy.cells));
      }
      counts.forEach(function (count, i) { count.textContent = policy.counts[i]; });
      for (const cursor of cursors) {
        const x = (100 * stop) / last + "%";
        cursor.setAttribute("x1", x);
        cursor.setAttribute("x2", x);
        cursor.removeAttribute("visibility");
      }
    }

    section.querySelector(".js").hidden = false;
    input.addEventListener("input", show);
    section.querySelector(".back").addEventListener("click", function () {
      input.value = start;
      show();
    });
    show();
  }

  data.dials.forEach(turn);

  function unfold() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const folded = target && target.closest("details");
    if (folded) folded.open = true;
  }
  window.addEventListener("hashchange", unfold);
  unfold();

  let opened = [];
  window.addEventListener("beforeprint", function () {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    for (const each of opened) each.open = true;
  });
  window.addEventListener("afterprint", function () {
    for (const each of opened) each.open = false;
  });
})();
