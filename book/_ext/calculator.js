// The calculator: a row, a raw rate, a step and n give decode rate and verdict. Nothing is fetched; the formulas are
// those of analysis.stats.economics and analysis.evidence.step_model, and the tests hold the two against each other.
(function () {
  "use strict";

  // The conditional acceptance c, the same for all positions, for which c + c^2 + ... + c^n is what was accepted.
  function conditional(accepted, n) {
    var low = 0, high = 1;
    for (var i = 0; i < 60; i += 1) {
      var middle = (low + high) / 2;
      if (powers(middle, n) < accepted) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  }

  function powers(c, n) {
    for (var sum = 0, term = 1, k = 0; k < n; k += 1) sum += term *= c;
    return sum;
  }

  // Intervals are [low, centre, high]; a row without an interval has null at both ends.
  function map(interval, change) {
    return interval.map(function (bound) { return bound === null ? null : change(bound); });
  }

  function carried(row, n) {
    if (n === row.n) return row.length;
    return map(row.length, function (bound) { return 1 + powers(conditional(bound - 1, row.n), n); });
  }

  function verdict(ratio) {
    if (ratio[0] === null) return "undecided";
    return ratio[0] > 1 ? "pays" : ratio[2] < 1 ? "loses" : "undecided";
  }

  function measured(length, given) {
    var unsure = given.unsure / 100, up = Math.pow(1 + unsure, 2), down = Math.pow(1 - unsure, 2);
    var needed = given.raw * given.step / 1000;
    return {
      raw: given.raw,
      step: [given.step * (1 - unsure), given.step, given.step * (1 + unsure)],
      ratio: [length[0] === null ? null : length[0] / needed / up, length[1] / needed,
        length[2] === null ? null : length[2] / needed / down],
    };
  }

  // Bytes of an evaluation whose rows are routed independently: E (1 - (1 - k/E)^w) distinct experts a layer.
  function bytes(model, rows, depth) {
    var distinct = model.experts * (1 - Math.pow(1 - model.used / model.experts, rows));
    return model.dense_bytes + distinct * model.expert_bytes + model.cache_bytes * depth;
  }

  function predicted(length, given, data) {
    var target = data.targets[given.target], drafter = data.drafters[given.drafter], n = Math.min(given.n, data.block);
    var rawMs = bytes(target, 1, given.depth) / given.bandwidth / 1e6 + given.fixed;
    var moved = bytes(drafter, data.block, 0) + bytes(target, n + 1, given.depth);
    var stepMs = moved / given.bandwidth / 1e6 + given.fixed + given.draft;
    var step = map(data.missed, function (factor) { return stepMs * factor; });
    return {
      raw: 1000 / rawMs,
      step: step,
      ratio: [length[0] === null ? null : length[0] * rawMs / step[2], length[1] * rawMs / step[1],
        length[2] === null ? null : length[2] * rawMs / step[0]],
    };
  }

  function shown(interval, digits, unit) {
    var text = interval[1].toFixed(digits) + unit;
    if (interval[0] === null) return text + " (no interval)";
    var low = interval[0].toFixed(digits), high = interval[2].toFixed(digits);
    return low === high ? text : text + " [" + low + ", " + high + "]";
  }

  function start(box) {
    var data = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
    var form = box.querySelector("form"), fields = form.elements;

    function number(name) {
      var field = fields[name], value = parseFloat(field.value);
      return isFinite(value) ? Math.max(parseFloat(field.min), value) : parseFloat(field.defaultValue);
    }

    function put(name, text, value) {
      var place = box.querySelector('[data-result="' + name + '"]');
      place.textContent = text;
      place.dataset.value = JSON.stringify(value);
    }

    function own(row) { // a row brings the raw rate and the step of its own cell along, where it has them
      fields.n.value = row.n;
      if (row.raw) fields.raw.value = row.raw.toFixed(2);
      if (row.step) fields.step.value = row.step.toFixed(1);
      form.querySelectorAll("input[data-follows]").forEach(follow);
    }

    function follow(slider) { slider.value = fields[slider.dataset.follows].value; }

    function place(ratio) { // on a scale from a quarter to four times, by doublings
      return Math.max(0, Math.min(100, (Math.log2(ratio) + 2) * 25));
    }

    function show() {
      var row = data.rows[fields.row.value], bandwidth = fields.source.value === "bandwidth";
      var given = {
        n: Math.round(number("n")), raw: number("raw"), step: number("step"), unsure: Math.min(99, number("unsure")),
        bandwidth: number("bandwidth"), depth: number("depth"), fixed: number("fixed"), draft: number("draft"),
        target: fields.target.value, drafter: fields.drafter.value,
      };
      var length = carried(row, given.n);
      var found = bandwidth ? predicted(length, given, data) : measured(length, given);
      var needed = map(found.step, function (ms) { return found.raw * ms / 1000; });
      var word = verdict(found.ratio);
      form.querySelector(".calculator-measured").hidden = bandwidth;
      form.querySelector(".calculator-bandwidth").hidden = !bandwidth;
      put("verdict", word, word);
      box.querySelector(".calculator-result").dataset.verdict = word;
      put("ratio", shown(found.ratio, 2, ""), found.ratio);
      var decode = map(found.ratio, function (ratio) { return ratio * found.raw; });
      put("decode", shown(decode, 1, " tokens/s"), decode);
      put("raw", found.raw.toFixed(1) + " tokens/s", found.raw);
      put("step", shown(found.step, 1, " ms"), found.step);
      put("length", shown(length, 2, " tokens"), length);
      put("needed", shown(needed, 2, " tokens"), needed);
      var acceptance = map(needed, function (tokens) { return (tokens - 1) / given.n; });
      put("acceptance", shown(acceptance, 2, ""), acceptance);
      put("how", row.how + (given.n === row.n ? "" : " Another n than the row's assumes that one conditional "
        + "acceptance holds at every position."), row.id);
      var link = box.querySelector(".calculator-row");
      link.href = row.href;
      link.textContent = row.label;
      var bar = box.querySelector(".calculator-span");
      var low = place(found.ratio[0] === null ? found.ratio[1] : found.ratio[0]);
      var high = place(found.ratio[2] === null ? found.ratio[1] : found.ratio[2]);
      bar.style.left = low + "%";
      bar.style.width = Math.max(0.5, high - low) + "%";
      box.querySelector(".calculator-point").style.left = place(found.ratio[1]) + "%";
    }

    form.addEventListener("input", function (event) {
      var field = event.target;
      if (field.name === "row") own(data.rows[field.value]);
      else if (field.dataset.follows) fields[field.dataset.follows].value = field.value;
      else form.querySelectorAll('input[data-follows="' + field.name + '"]').forEach(follow);
      show();
    });
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    own(data.rows[fields.row.value]);
    show();
    box.querySelectorAll("[data-needs-scripts]").forEach(function (part) { part.hidden = false; });
    box.dataset.ready = "true";
  }

  document.querySelectorAll("div.calculator").forEach(start);
})();
