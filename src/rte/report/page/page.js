"use strict";
(() => {
  const WORDS = ["accept", "keep", "relabel", "no class", "ambiguous"];
  const SHEETS_KEPT = 24; // decoded sheets in memory at a time
  const RISKY = /^ *[=+\-@\t\r\n'＝＋－＠]/; // as rte.data.ids.cell: a spreadsheet may take such a cell for a formula
  const NUMBER = /^-?[0-9]+$/;

  const cell = (text) => (RISKY.test(text) && !NUMBER.test(text) ? "'" + text : text);
  const uncell = (text) => (text.startsWith("'") ? text.slice(1) : text);
  const quoted = (text) => (/[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  const csv = (rows) => rows.map((row) => row.map((v) => quoted(cell(String(v)))).join(",") + "\r\n").join("");
  const percent = (share) => share < 0.0005 ? "< 0.1 %" : (100 * share).toFixed(share < 0.1 ? 1 : 0) + " %";
  const apart = (text) => "\u2068" + text + "\u2069"; // a name that turns its direction turns nothing else
  const count = (n) => n.toLocaleString("en");

  // Names of files that are no Unicode hold lone surrogates for their bytes, which are written as they were.
  function bytes(text) {
    const parts = text.split(/([\udc80-\udcff])/u);
    return new Blob(parts.map((part, k) => (k % 2 ? new Uint8Array([part.charCodeAt(0) - 0xdc00]) : part)), { type: "text/csv" });
  }

  function parse(text) {
    const rows = [];
    let row = [], value = "", inside = false;
    for (let k = 0; k < text.length; k++) {
      const c = text[k];
      if (inside) {
        if (c !== '"') value += c;
        else if (text[k + 1] === '"') { value += c; k++; }
        else inside = false;
      } else if (c === '"') inside = true;
      else if (c === ",") { row.push(value); value = ""; }
      else if (c === "\n") { row.push(value.replace(/\r$/, "")); rows.push(row); row = []; value = ""; }
      else value += c;
    }
    if (value || row.length) rows.push([...row, value]);
    return rows;
  }

  function make(name, text, className) {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  }

  class Review {
    constructor(section) {
      this.data = JSON.parse(section.querySelector(".data").textContent);
      this.section = section;
      this.n = this.data.index.length;
      this.store = "rte-review:" + this.data.run;
      this.decisions = new Map(); // by place in the data: {word, label}
      this.undone = []; // what decisions were before, the latest last
      this.order = []; // places in the data that are listed
      this.at = 0; // place in the order that is selected
      this.cards = new Map(); // place in the order -> its card
      this.spare = [];
      this.sheets = new Map();
      this.find = (selector) => section.querySelector(selector);
      this.grid = this.find("[role=listbox]");
      this.inner = this.find(".inner");
      this.filters = this.find(".filters");
      this.placeOf = new Map(this.data.index.map((i, place) => [i, place]));
      this.load();
      this.offer();
      this.listen();
      this.find(".tool").hidden = false;
      this.filter();
    }

    // ---- what is decided

    name(k) { return k < 0 ? "–" : this.data.classes[k]; }

    shown(k) { return apart(this.name(k)); }

    decide(place, word, label) {
      const { suggested, given } = this.data;
      const labels = { accept: suggested[place], keep: given[place], relabel: label };
      this.undone.push([place, this.decisions.get(place)]);
      this.decisions.set(place, { word, label: labels[word] ?? -1 });
      this.save();
      const filtered = this.filters.elements.state.value;
      if (filtered) this.filter(this.at);
      else this.select(this.next());
    }

    undo() {
      const last = this.undone.pop();
      if (!last) return this.say("There is nothing to undo.");
      const [place, before] = last;
      if (before) this.decisions.set(place, before);
      else this.decisions.delete(place);
      this.save();
      this.filter();
      const at = this.order.indexOf(place);
      if (at >= 0) this.select(at);
      this.say("");
    }

    next() { // the next one to decide; the last one, if all are
      for (let at = this.at + 1; at < this.order.length; at++) if (!this.decisions.has(this.order[at])) return at;
      return Math.min(this.at + 1, this.order.length - 1);
    }

    load() {
      const { reviewed, classes } = this.data;
      for (const [index, word] of Object.entries(reviewed)) this.take(Number(index), word, classes.indexOf(word));
      try {
        const kept = JSON.parse(localStorage.getItem(this.store) ?? "null");
        if (kept) {
          this.decisions.clear();
          for (const [index, [word, label]] of Object.entries(kept)) this.take(Number(index), word, label);
        }
      } catch {
        this.forgetful = true; // this browser keeps nothing for files, or what it kept is broken
      }
    }

    take(index, said, label) { // a decision from elsewhere; says whether it makes sense
      const place = this.placeOf.get(index);
      const word = WORDS.includes(said) ? said : label >= 0 ? "relabel" : "";
      if (place === undefined || !word) return false;
      if (word === "relabel" && !(label >= 0 && label < this.data.classes.length)) return false;
      const labels = { accept: this.data.suggested[place], keep: this.data.given[place], relabel: label };
      this.decisions.set(place, { word, label: labels[word] ?? -1 });
      return true;
    }

    save() {
      const tree = {};
      for (const [place, { word, label }] of this.decisions) tree[this.data.index[place]] = [word, label];
      try {
        localStorage.setItem(this.store, JSON.stringify(tree));
      } catch {
        this.forgetful = true;
      }
    }

    // ---- files

    rowsOf(file) {
      const { index, id, given } = this.data;
      const places = [...this.decisions.keys()].sort((a, b) => index[a] - index[b]);
      const label = (k) => (k < 0 ? "" : this.name(k));
      if (file === "labels") return [["id", "label"], ...this.labels()];
      const row = (p) => [index[p], id[p], this.name(given[p]), this.decisions.get(p).word, label(this.decisions.get(p).label)];
      return [["index", "id", "given_label", "decision", "label"], ...places.map(row)];
    }

    labels() { // of all examples but those that have no class: `rte fit --labels` leaves out what is not in its file
      const { all } = this.data;
      const rows = [];
      all.index.forEach((index, k) => {
        const decision = this.decisions.get(this.placeOf.get(index));
        const label = decision ? decision.label : all.given[k];
        if (label >= 0) rows.push([all.id ? all.id[k] : index, this.name(label)]);
      });
      return rows;
    }

    write(file) {
      if (!this.decisions.size) return this.say("Nothing is decided yet.");
      const link = make("a");
      link.href = URL.createObjectURL(bytes(csv(this.rowsOf(file))));
      link.download = file + ".csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      const what = file === "labels" ? "all labels, as you decided or as given" : `${count(this.decisions.size)} decisions`;
      this.say(`${file}.csv holds ${what}. Your browser has put it among its downloads.`);
    }

    read(text) {
      const [header = [], ...rows] = parse(text.replace(/^\ufeff/, ""));
      const [index, given, word, label] = ["index", "given_label", "decision", "label"].map((name) => header.indexOf(name));
      if (Math.min(index, given, word, label) < 0) return this.say("This is no decisions.csv: it needs index, given_label, decision and label.");
      const before = [...this.decisions];
      let taken = 0;
      for (const row of rows) {
        const place = this.placeOf.get(Number(row[index]));
        const same = place !== undefined && this.name(this.data.given[place]) === uncell(row[given] ?? "");
        taken += same && this.take(Number(row[index]), row[word], this.data.classes.indexOf(uncell(row[label] ?? "")));
      }
      this.undone = [];
      this.save();
      this.filter();
      const left = rows.length - taken;
      this.say(`${count(taken)} decisions taken over` + (left ? `; ${count(left)} rows do not belong to this run or were not understood.` : "."));
      return before;
    }

    forget() {
      if (!this.decisions.size || !confirm(`Forget ${this.decisions.size} decisions?`)) return;
      this.decisions.clear();
      this.undone = [];
      this.save();
      this.filter();
    }

    // ---- choosing what is listed

    offer() {
      const { given, suggested, kind, classes, kinds } = this.data;
      const options = (name, values, text) => {
        const counts = new Map();
        for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
        const select = this.filters.elements[name];
        select.append(new Option("all", ""));
        for (const value of [...counts.keys()].sort((a, b) => a - b)) select.append(new Option(`${text(value)} (${count(counts.get(value))})`, value));
      };
      options("given", given, (k) => this.name(k));
      options("suggested", suggested, (k) => this.name(k));
      options("kind", kind, (k) => kinds[k] || "other");
      this.find("[data-file=labels]").hidden = !this.data.all;
      this.find("datalist").append(...classes.map((name) => new Option(name, name)));
      const pairs = new Map();
      given.forEach((g, p) => {
        if (g === suggested[p]) return;
        const pair = g + ":" + suggested[p];
        pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
      });
      for (const [pair, n] of [...pairs].sort((a, b) => b[1] - a[1]).slice(0, 6)) {
        const [g, s] = pair.split(":");
        const button = make("button", `${this.shown(g)} → ${this.shown(s)} · ${count(n)}`);
        button.type = "button";
        button.dataset.pair = pair;
        this.find(".pairs").append(button);
      }
    }

    filter(at = 0) {
      const { given, suggested, kind, id } = this.data;
      const wanted = Object.fromEntries(["given", "suggested", "kind", "state", "text"].map((name) => [name, this.filters.elements[name].value]));
      const text = wanted.text.toLowerCase();
      this.order = [];
      for (let p = 0; p < this.n; p++) {
        if (wanted.given && given[p] !== Number(wanted.given)) continue;
        if (wanted.suggested && suggested[p] !== Number(wanted.suggested)) continue;
        if (wanted.kind && kind[p] !== Number(wanted.kind)) continue;
        if (wanted.state && this.decisions.has(p) !== (wanted.state === "done")) continue;
        if (text && !id[p].toLowerCase().includes(text)) continue;
        this.order.push(p);
      }
      for (const button of this.find(".pairs").children) button.setAttribute("aria-pressed", button.dataset.pair === `${wanted.given}:${wanted.suggested}`);
      const { total, issues } = this.data;
      this.find(".count").textContent =
        this.order.length < this.n
          ? `${count(this.order.length)} of ${count(this.n)} examples match.`
          : `The ${count(this.n)} most suspicious of ${count(total)} examples; ${count(issues)} are suspects.`;
      this.layout();
      this.select(Math.min(at, this.order.length - 1));
    }

    // ---- the list: only what can be seen is in the document

    layout() {
      const width = this.grid.clientWidth;
      if (!width) return; // not shown yet
      const pictures = Boolean(this.data.side);
      this.columns = pictures ? Math.max(2, Math.floor(width / (width < 500 ? 112 : 132))) : 1;
      this.wide = Math.floor(width / this.columns);
      this.high = pictures ? this.wide + 40 : 60;
      this.inner.style.height = Math.ceil(this.order.length / this.columns) * this.high + "px";
      for (const card of this.cards.values()) this.put(card);
      this.cards.clear();
      this.render();
    }

    put(card) { card.remove(); this.spare.push(card); }

    render() {
      if (!this.columns) return;
      const first = Math.max(0, Math.floor(this.grid.scrollTop / this.high) - 1) * this.columns;
      const rows = Math.ceil(this.grid.clientHeight / this.high) + 3;
      const last = Math.min(this.order.length, first + rows * this.columns);
      for (const [at, card] of this.cards) if (at < first || at >= last) { this.put(card); this.cards.delete(at); }
      for (let at = first; at < last; at++) if (!this.cards.has(at)) this.cards.set(at, this.card(at));
    }

    card(at) {
      const card = this.spare.pop() ?? this.blank();
      const place = this.order[at];
      const { data } = this;
      const style = card.style;
      style.width = this.wide + "px";
      style.height = this.high + "px";
      style.transform = `translate(${(at % this.columns) * this.wide}px, ${Math.floor(at / this.columns) * this.high}px)`;
      card.dataset.at = at;
      card.id = `${this.section.id}-${at}`;
      card.setAttribute("aria-posinset", at + 1);
      card.setAttribute("aria-setsize", this.order.length);
      card.setAttribute("aria-selected", at === this.at);
      const { canvas, label, score, mark } = card.parts;
      label.textContent = `${this.shown(data.given[place])} → ${this.shown(data.suggested[place])}`;
      label.title = data.id[place];
      score.textContent = this.low(place);
      if (data.side) this.draw(canvas, place);
      const decision = this.decisions.get(place);
      mark.hidden = !decision;
      if (decision) {
        mark.textContent = this.said(decision);
        mark.className = "mark " + decision.word.replace(" ", "-");
      }
      this.inner.append(card);
      return card;
    }

    low(place) { // the line below a card's labels
      const { data } = this;
      const kind = data.kinds[data.kind[place]];
      const more = data.values ? data.values[place] : kind && kind !== "wrong label" ? kind : "";
      const believed = `trust ${percent(data.score[place])}`;
      return data.side ? [believed, more].filter(Boolean).join(" · ") : [apart(data.id[place]), believed, more].filter(Boolean).join(" · ");
    }

    blank() {
      const card = make("div", undefined, "card" + (this.data.side ? "" : " row") + (this.data.side < 24 ? " crisp" : ""));
      card.setAttribute("role", "option");
      const body = make("div");
      const parts = { label: make("p", "", "label"), score: make("p", "", "score"), mark: make("span", "", "mark") };
      if (this.data.side) {
        parts.canvas = make("canvas");
        parts.canvas.width = parts.canvas.height = this.data.side;
        body.append(parts.canvas);
      }
      body.append(parts.label, parts.score, parts.mark);
      card.append(body);
      card.parts = parts;
      return card;
    }

    said({ word, label }) {
      return word === "accept" ? "✓ " + this.shown(label) : word === "keep" ? "= kept" : word === "relabel" ? "→ " + this.shown(label) : word;
    }

    draw(canvas, place) {
      const { side, across, perSheet, shown } = this.data;
      const pen = canvas.getContext("2d");
      pen.clearRect(0, 0, side, side);
      canvas.place = place;
      if (place >= shown) return;
      const k = place % perSheet;
      const image = this.sheet(Math.floor(place / perSheet));
      const paint = () => {
        if (canvas.place === place) pen.drawImage(image, (k % across) * side, Math.floor(k / across) * side, side, side, 0, 0, side, side);
      };
      if (image.complete) paint();
      else image.addEventListener("load", paint, { once: true });
    }

    sheet(number) {
      let image = this.sheets.get(number);
      this.sheets.delete(number);
      if (!image) {
        image = new Image();
        image.src = this.data.sheets[number];
      }
      this.sheets.set(number, image); // the one that was asked for last is the last
      if (this.sheets.size > SHEETS_KEPT) this.sheets.delete(this.sheets.keys().next().value);
      return image;
    }

    select(at) {
      const before = this.cards.get(this.at);
      if (before) before.setAttribute("aria-selected", false);
      this.at = Math.max(0, at);
      if (this.columns) {
        const top = Math.floor(this.at / this.columns) * this.high;
        const { scrollTop, clientHeight } = this.grid;
        if (top < scrollTop) this.grid.scrollTop = top;
        else if (top + this.high > scrollTop + clientHeight) this.grid.scrollTop = top + this.high - clientHeight;
        this.render();
        for (const shown of [before, this.cards.get(this.at)]) if (shown && this.cards.get(Number(shown.dataset.at)) === shown) this.renew(Number(shown.dataset.at));
        const card = this.cards.get(this.at);
        if (card) this.grid.setAttribute("aria-activedescendant", card.id);
        else this.grid.removeAttribute("aria-activedescendant");
      }
      this.show();
    }

    renew(at) {
      this.put(this.cards.get(at));
      this.cards.set(at, this.card(at));
    }

    // ---- the desk: one example, large

    show() {
      const { data } = this;
      const place = this.order[this.at];
      const empty = place === undefined;
      this.find(".desk").hidden = empty;
      this.sum();
      if (empty) return;
      const canvas = this.find(".big canvas");
      canvas.hidden = !data.side;
      this.find(".big").classList.toggle("crisp", data.side < 24);
      if (data.side) {
        if (canvas.width !== data.side) canvas.width = canvas.height = data.side;
        this.draw(canvas, place);
      }
      this.find(".values").textContent = data.values ? data.values[place] : "";
      this.find(".id").textContent = data.id[place];
      const [given, suggested] = [data.given[place], data.suggested[place]].map((k) => this.shown(k));
      this.find(".change").textContent = `${given} → ${suggested}`;
      this.find(".to").textContent = suggested;
      this.find(".from").textContent = given;
      const rows = [
        ["trust in label", percent(data.score[place])],
        [`p(${given})`, percent(data.pGiven[place])],
        [`p(${suggested})`, percent(data.pSuggested[place])],
      ];
      const second = data.second[place];
      if (second >= 0) rows.push(["second choice", this.name(second)]);
      if (data.kind[place]) rows.push(["kind", data.kinds[data.kind[place]]]);
      if (data.duplicate[place]) rows.push(["duplicate of", data.duplicate[place]]);
      this.find(".scores").replaceChildren(...rows.flatMap(([term, value]) => [make("dt", term), make("dd", value)]));
      const decision = this.decisions.get(place);
      this.find(".verdict").textContent = decision ? "Decided: " + this.said(decision) : "";
    }

    sum() {
      const words = { accept: 0, keep: 0, relabel: 0, "no class": 0, ambiguous: 0 };
      for (const { word } of this.decisions.values()) words[word]++;
      const total = this.decisions.size;
      this.find("progress").value = total / this.n;
      const parts = Object.entries(words).filter(([, n]) => n).map(([word, n]) => `${count(n)} ${word}`);
      this.find(".sum").textContent = `${count(total)} of ${count(this.n)} decided` + (parts.length ? `: ${parts.join(", ")}` : "");
      this.find("[data-do=undo]").disabled = !this.undone.length;
      if (this.forgetful) this.say("This browser does not keep what you decide here. Export it before you close the page.");
    }

    say(text) { this.find(".message").textContent = text; }

    // ---- keyboard, mouse, touch

    act(word) {
      const place = this.order[this.at];
      if (word === "undo") this.undo();
      else if (place !== undefined) this.decide(place, word);
    }

    choose() {
      const input = this.find("[name=other]");
      const typed = input.value.trim().toLowerCase();
      const names = this.data.classes.map((name) => name.trim().toLowerCase());
      const starts = names.flatMap((name, k) => (typed && name.startsWith(typed) ? [k] : []));
      const label = names.includes(typed) ? names.indexOf(typed) : starts.length === 1 ? starts[0] : -1;
      const place = this.order[this.at];
      if (label < 0 || place === undefined) return this.say(typed ? `No class is called ${input.value}.` : "Type the name of a class.");
      input.value = "";
      this.say("");
      this.grid.focus({ preventScroll: true });
      const same = { [this.data.given[place]]: "keep", [this.data.suggested[place]]: "accept" };
      this.decide(place, same[label] ?? "relabel", label);
    }

    key(event) {
      const typing = event.target.matches("input, select");
      if (event.key === "Escape" && typing) return this.grid.focus();
      if (typing || event.altKey || event.metaKey) return;
      const key = event.key.toLowerCase();
      if (event.ctrlKey && key !== "z") return;
      const page = this.columns * Math.max(1, Math.floor(this.grid.clientHeight / this.high) - 1);
      const moves = { arrowright: 1, arrowleft: -1, arrowdown: this.columns, arrowup: -this.columns, pagedown: page, pageup: -page, home: -this.n, end: this.n };
      const words = { a: "accept", k: "keep", n: "no class", m: "ambiguous", u: "undo", z: event.ctrlKey ? "undo" : undefined };
      if (key in moves) this.select(Math.max(0, Math.min(this.order.length - 1, this.at + moves[key])));
      else if (words[key]) this.act(words[key]);
      else if (key === "c") this.find("[name=other]").focus();
      else return;
      event.preventDefault();
    }

    listen() {
      let waits = false;
      this.grid.addEventListener("scroll", () => {
        if (!waits) requestAnimationFrame(() => { waits = false; this.render(); });
        waits = true;
      }, { passive: true });
      new ResizeObserver(() => { if (this.grid.clientWidth !== this.seen) { this.seen = this.grid.clientWidth; this.layout(); this.select(this.at); } }).observe(this.grid);
      this.grid.addEventListener("click", (event) => {
        const card = event.target.closest(".card");
        if (card) this.select(Number(card.dataset.at));
      });
      this.find(".split").addEventListener("keydown", (event) => this.key(event));
      this.find(".buttons").addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (button) this.act(button.dataset.do);
      });
      this.find(".other").addEventListener("submit", (event) => { event.preventDefault(); this.choose(); });
      this.filters.addEventListener("submit", (event) => event.preventDefault());
      this.filters.addEventListener("input", () => this.filter());
      this.filters.addEventListener("reset", () => setTimeout(() => this.filter()));
      this.find(".pairs").addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (!button) return;
        const on = button.getAttribute("aria-pressed") === "true";
        const [given, suggested] = on ? ["", ""] : button.dataset.pair.split(":");
        this.filters.elements.given.value = given;
        this.filters.elements.suggested.value = suggested;
        this.filter();
      });
      this.find(".files").addEventListener("click", (event) => {
        const file = event.target.dataset.file;
        if (file === "forget") this.forget();
        else if (file) this.write(file);
      });
      this.find("[type=file]").addEventListener("change", async (event) => {
        const [file] = event.target.files;
        if (file) this.read(await file.text());
        event.target.value = "";
      });
      addEventListener("storage", (event) => { // the same page in another tab
        if (event.key !== this.store) return;
        this.decisions.clear();
        this.load();
        this.filter(this.at);
      });
    }
  }

  const reviews = new Map();

  function open(article) {
    for (const section of article.querySelectorAll(".review")) if (!reviews.has(section)) reviews.set(section, new Review(section));
  }

  function turn() { // to the run that the address names; without tabs there is one
    const tabs = [...document.querySelectorAll(".tabs a")];
    const wanted = tabs.find((tab) => tab.hash === location.hash) ?? tabs[0];
    for (const article of document.querySelectorAll("article")) {
      article.hidden = Boolean(wanted) && "#" + article.id !== wanted.hash;
      if (!article.hidden) open(article);
    }
    for (const tab of tabs) if (tab === wanted) tab.setAttribute("aria-current", "page"); else tab.removeAttribute("aria-current");
    if (wanted && location.hash === wanted.hash) scrollTo(0, 0);
  }

  document.addEventListener("click", async (event) => {
    if (!event.target.matches(".copy")) return;
    const code = event.target.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      event.target.textContent = "Copied";
      setTimeout(() => { event.target.textContent = "Copy"; }, 1500);
    } catch { // not allowed here: select it, so that it can be copied by hand
      getSelection().selectAllChildren(code);
    }
  });
  addEventListener("hashchange", turn);
  turn();
})();
