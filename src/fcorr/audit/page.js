"use strict";
// The model in the page: predictions, flips and contributions, computed in double precision from
// the single-precision weights that the page carries. No network, no library.
(() => {
  const source = document.getElementById("model");
  if (!source) return;
  const model = JSON.parse(source.textContent);
  const weights = new Float32Array(Uint8Array.from(atob(model.weights), (c) => c.charCodeAt(0)).buffer);
  const part = ([start, length]) => weights.subarray(start, start + length);
  const nFeatures = model.features.length, nCodes = model.cardinalities.length;
  const offsets = model.cardinalities.reduce((sums, n) => [...sums, sums.at(-1) + n], [0]);

  // ---------------------------------------------------------------- from a row to codes and numbers

  const standardise = (value, { mean, scale, keep_missing }) => {
    if (!Number.isFinite(value)) return keep_missing ? NaN : 0;
    return Math.fround(Math.min(1e12, Math.max(-1e12, (value - mean) / scale)));
  };
  const asBoolean = (value) => ({ true: true, 1: true, false: false, 0: false })[String(value).toLowerCase()];
  const dateParts = (text, origin) => {
    const date = new Date(text.length > 10 ? text.replace(" ", "T") + "Z" : text + "T00:00Z");
    const days = Math.floor((date - new Date(origin + "T00:00Z")) / 864e5);
    return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, hour: date.getUTCHours(),
      day_of_week: (date.getUTCDay() + 6) % 7, days };
  };
  const codeOf = (column, value) => {
    const known = column.categories.indexOf(column.kind === "boolean" && value != null ? asBoolean(value) : value);
    if (known >= 0) return known;
    return value == null || column.pool == null ? column.mode : column.pool;
  };
  function encodeColumn(column, value, row) {
    const [first] = column.features;
    if (column.kind === "categorical" || column.kind === "boolean") row[first.at] = codeOf(column, value);
    else if (column.kind === "ordinal") {
      const at = value == null ? -1 : column.categories.indexOf(value);
      row[first.at] = standardise(at < 0 ? NaN : at, first);
    } else if (column.kind === "rated") {
      const at = column.categories.indexOf(value ?? null);
      const rating = at >= 0 ? column.ratings[at] : value == null ? column.ratings[column.mode] : 0;
      row[first.at] = standardise(rating, first);
    } else if (column.kind === "datetime") {
      const parts = value == null ? {} : dateParts(value, column.origin);
      column.features.forEach((f, i) => { row[f.at] = standardise(parts[column.parts[i]], f); });
    } else row[first.at] = standardise(value == null ? NaN : Number(value), first);
  }
  function encode(values) {
    const row = new Float64Array(nFeatures);
    for (const column of model.columns) encodeColumn(column, values[column.name] ?? null, row);
    return row;
  }

  // ---------------------------------------------------------------- the network

  // The normal distribution for GELU: a table by Simpson's rule, cubic between its points.
  const STEP = 1 / 256, REACH = 6;
  const density = (x) => Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI);
  const phis = new Float64Array(2 * REACH / STEP + 2), slopes = phis.map((_, i) => density(i * STEP - REACH));
  phis[0] = 9.865876450376946e-10;
  for (let i = 0; i + 1 < phis.length; i++) {
    phis[i + 1] = phis[i] + STEP / 6 * (slopes[i] + 4 * density((i + 0.5) * STEP - REACH) + slopes[i + 1]);
  }
  function gelu(x) {
    if (x <= -REACH || x >= REACH) return x > 0 ? x : 0;
    const t = (x + REACH) / STEP, i = Math.floor(t), s = t - i, rest = 1 - s;
    return x * (phis[i] * (1 + 2 * s) * rest * rest + phis[i + 1] * s * s * (3 - 2 * s) +
      STEP * s * rest * (slopes[i] * rest - slopes[i + 1] * s));
  }
  function normalise(x, [weight, bias, eps]) {
    const w = part(weight), b = part(bias);
    let mean = 0, square = 0;
    for (const v of x) mean += v / x.length;
    for (const v of x) square += (v - mean) ** 2 / x.length;
    const factor = 1 / Math.sqrt(square + eps);
    return x.map((v, i) => (v - mean) * factor * w[i] + b[i]);
  }
  function attentionRow(z, i) {
    const factor = z[i] / Math.sqrt(z.length), top = Math.max(...z.map((v) => v * factor));
    const row = z.map((v) => Math.exp(v * factor - top));
    const total = row.reduce((a, b) => a + b);
    return row.map((v) => v / total);
  }
  function encoderLayer(h, layer) {
    const z = normalise(h, layer.attention_norm);
    const least = Math.min(...z), most = Math.max(...z), root = Math.sqrt(z.length);
    const attended = z.map((own) => {  // without a matrix: it runs thousands of times
      const factor = own / root, top = factor * (own > 0 ? most : least);
      let total = 0, sum = 0;
      for (const v of z) {
        const e = Math.exp(v * factor - top);
        total += e;
        sum += e * v;
      }
      return sum / total;
    });
    if (layer.residual) h.forEach((v, i) => { attended[i] += v; });
    let x = normalise(attended, layer.stack_norm);
    layer.stack.forEach(([weight, bias], depth) => {
      const w = part(weight), b = part(bias);
      x = x.map((v, i) => (depth ? gelu(v) : v) * w[i] + b[i]);
    });
    return attended.map((v, i) => v + x[i]);
  }
  // Where a feature lies in a table of slots: two of them, and the share of the way.
  function locate(member, row, j) {
    if (j < nCodes) return [offsets[j] + row[j], offsets[j] + row[j], 0];
    const k = j - nCodes, { starts } = member, all = part(member.knots);
    if (Number.isNaN(row[j])) return [offsets.at(-1) + starts.at(-1) + k, offsets.at(-1) + starts.at(-1) + k, 0];
    const knots = all.subarray(starts[k], starts[k + 1]);
    let i = 0;
    while (i + 1 < knots.length && knots[i + 1] <= row[j]) i++;
    const next = Math.min(i + 1, knots.length - 1), width = knots[next] - knots[i];
    const share = width ? Math.min(1, Math.max(0, (row[j] - knots[i]) / width)) : 0;
    return [offsets.at(-1) + starts[k] + i, offsets.at(-1) + starts[k] + next, share];
  }
  const lookUp = (table, width, [a, b, share], v) => (1 - share) * table[a * width + v] + share * table[b * width + v];
  function embed(member, row) {
    const table = part(member.values), views = [];
    const slots = model.features.map((_, j) => locate(member, row, j));
    for (let v = 0; v < member.views; v++) {
      views.push(Float64Array.from(slots, (slot) => lookUp(table, member.views, slot, v)));
    }
    return views;
  }
  function forward(member, views) {
    const mixed = part(member.mixed), hasMain = member.main[1] > 0;
    let x = Float64Array.from(part(member.head.at(-1)[1]));
    if (!hasMain || mixed.some((share) => share)) {  // of an additive member the head is its bias
      let h = views.map((view) => hasMain ? view.map((v, j) => v * mixed[j]) : view);
      for (const layer of member.layers) h = h.map((view) => encoderLayer(view, layer));
      x = normalise(Float64Array.from(h.flatMap((view) => [...view])), member.head_norm);
      member.head.forEach(([weight, bias], depth) => {
        const w = part(weight), b = part(bias);
        if (depth) x = x.map(gelu);
        x = Float64Array.from(b, (start, o) => x.reduce((sum, v, i) => sum + v * w[o * x.length + i], start));
      });
    }
    return hasMain ? x.map((v, o) => v + views[o].reduce((a, b) => a + b)) : x;
  }
  const mean = (rows) => rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
  const softmax = (x) => {
    const top = Math.max(...x), e = x.map((v) => Math.exp(v - top)), total = e.reduce((a, b) => a + b);
    return e.map((v) => v / total);
  };
  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  const together = (all) => mean(model.members.map((m, k) => forward(m, all[k])));
  const embedAll = (row) => model.members.map((m) => embed(m, row));
  function averaged(all) {
    const { features, shares } = model.portfolio;
    const links = { sigmoid: (x) => x.map(sigmoid), softmax, exp: (x) => x.map(Math.exp), identity: (x) => x };
    let total = null;
    stands.forEach((stand, i) => {
      all.forEach((views, m) => views.forEach((view, v) => features.forEach((j) => { view[j] = stand[m][v][j]; })));
      const found = links[model.link](together(all));
      total = found.map((v, k) => v * shares[i] + (total ? total[k] : 0));
    });
    const back = { sigmoid: (v) => Math.log(v / (1 - v)), identity: (v) => v };
    return total.map(back[model.link] ?? Math.log);
  }
  // The portfolio's sensitive values, embedded.
  const stands = model.portfolio ? model.portfolio.values.map((each) => {
    const row = new Array(nFeatures).fill(0);
    model.portfolio.features.forEach((j, k) => { row[j] = each[k] ?? NaN; });
    return embedAll(row);
  }) : [];
  // What the link is applied to: log-odds, the logarithm of a rate, or the unit of y.
  function outputs(all) {
    const raw = model.portfolio ? averaged(all) : together(all);
    return raw.map((v, i) => model.constant + model.unit * (v + model.balance[i]));
  }
  function predict(values) {
    const x = outputs(embedAll(encode(values)));
    if (model.link === "softmax") return [...softmax(x)];
    return [model.link === "sigmoid" ? sigmoid(x[0]) : model.link === "exp" ? Math.exp(x[0]) : x[0]];
  }
  const mainEffect = (row, j, o) => model.hidden.includes(j) ? 0 : model.unit * model.members.reduce((sum, m) =>
    sum + lookUp(part(m.main), m.outputs, locate(m, row, j), o), 0) / model.members.length;
  function explain(values, o) {
    const row = encode(values);
    const effects = model.features.map((_, j) => mainEffect(row, j, o));
    const start = outputs(absent())[o], end = outputs(embedAll(row))[o];
    return { start, effects, together: end - start - effects.reduce((a, b) => a + b, 0), end };
  }
  // All features at 0, their mean.
  const absent = () => model.members.map((m) => Array.from({ length: m.views }, () => new Float64Array(nFeatures)));
  // Each feature's whole part: what the output changes by as it appears, mean over the orders.
  function contributions(values, o) {
    const all = embedAll(encode(values)), found = new Float64Array(nFeatures);
    for (const order of model.orders) {
      const present = absent();
      let before = outputs(present)[o];
      for (const j of order) {
        if (model.hidden.includes(j)) continue;
        present.forEach((views, m) => views.forEach((view, v) => { view[j] = all[m][v][j]; }));
        const after = outputs(present)[o];
        found[j] += (after - before) / model.orders.length;
        before = after;
      }
    }
    return [...found];
  }
  function attention(values, j) {
    const row = encode(values);
    return [...mean(model.members.map((m) => {
      const mixed = part(m.mixed), view = embed(m, row)[0].map((v, i) => v * mixed[i]);
      return attentionRow(normalise(view, m.layers[0].attention_norm), j);
    }))];
  }
  window.fcorr = { predict, explain, contributions, attention, model };

  // ---------------------------------------------------------------- the controls

  const $ = (id) => document.getElementById(id);
  const make = (tag, attributes = {}, ...children) => {
    const isDrawn = ["svg", "path", "circle", "rect", "text", "line"].includes(tag);
    const element = isDrawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const show = (x) => Math.abs(x) >= 1e-3 && Math.abs(x) < 1e6 || x === 0 ? Number(x.toPrecision(4)).toString() : x.toExponential(2);
  const state = {}, UNSEEN = "a value not seen in training";
  function menu(column, id, change) {
    const select = make("select", { id });
    column.categories.forEach((category, i) => Array.isArray(category) || select.append(make("option", { value: i }, category === null ? "missing" : String(category))));
    if (!column.categories.includes(null)) select.append(make("option", { value: "none" }, "missing"));
    select.append(make("option", { value: "unseen" }, UNSEEN));
    select.value = column.mode ?? Math.floor(column.categories.length / 2);
    if (select.selectedIndex < 0) select.value = "unseen";
    const read = () => ({ none: null, unseen: "\u0000unseen" })[select.value] ?? (select.value in column.categories ? column.categories[select.value] : null);
    state[column.name] = read();
    select.addEventListener("change", () => change(read()));
    return [select];
  }
  function slider(column, id, change) {
    const { low, high, mean: middle = (low + high) / 2 } = column.features[0], start = model.starts[column.name] ?? middle;
    const step = column.kind === "numeric" && high - low > 20 ? 1 : (high - low) / 100 || 1;
    const at = step === 1 ? Math.round(start) : start;
    const box = make("input", { id, type: "number", step: "any", value: show(at) });
    const slide = make("input", { type: "range", min: low, max: high, step, value: at, "aria-label": column.name });
    state[column.name] = Number(show(at));
    box.addEventListener("input", () => { slide.value = box.value; change(box.value === "" ? null : Number(box.value)); });
    slide.addEventListener("input", () => { box.value = slide.value; change(Number(slide.value)); });
    return [slide, box];
  }
  function dates(column, id, change) {
    const box = make("input", { id, type: "datetime-local", value: column.first.slice(0, 16).replace(" ", "T") });
    if (column.first.length === 10) box.value = column.first + "T00:00";
    state[column.name] = box.value || null;
    box.addEventListener("input", () => change(box.value || null));
    return [box];
  }
  function table(target, header, rows) {
    const cells = (tag, row) => make("tr", {}, ...row.map((cell) => make(tag, tag === "th" ? { scope: "col" } : {}, cell)));
    target.replaceChildren(make("thead", {}, cells("th", header)), make("tbody", {}, ...rows.map((row) => cells("td", row))));
  }
  function bars(target, items) {  // of name, beginning and end
    const ends = items.flatMap(([, from, to]) => [from, to]), low = Math.min(0, ...ends), width = Math.max(0, ...ends) - low || 1;
    const X = (x) => 245 + 295 * (x - low) / width, height = 22;
    const said = items.map(([name, from, to]) => `${name} ${show(to - from)}`).join(", ");
    const svg = make("svg", { viewBox: `0 0 640 ${items.length * height}`, role: "img", "aria-label": said });
    items.forEach(([name, from, to], i) => {
      const y = i * height, look = { x: X(Math.min(from, to)), y: y + 3, width: Math.max(1, X(Math.max(from, to)) - X(Math.min(from, to))), height: 15 };
      svg.append(make("text", { x: 235, y: y + 15, "text-anchor": "end" }, name.length > 24 ? name.slice(0, 23) + "…" : name));
      svg.append(make("rect", { ...look, class: to < from ? "down" : "up" }), make("text", { x: 550, y: y + 15 }, show(to - from)));
    });
    target.replaceChildren(svg);
  }
  function curve(target, values, j, o) {
    const column = model.columns.find((c) => c.features.some((f) => f.at === j));
    const row = encode(values), feature = column.features.find((f) => f.at === j), isCode = j < nCodes;
    const { low, high, mean: centre, scale } = feature;
    const points = isCode ? model.cardinalities[j] : 101;
    const xs = Array.from({ length: points }, (_, i) => isCode ? i : ((low + (high - low) * i / 100) - centre) / scale);
    const at = (x) => { const other = row.slice(); other[j] = x; return mainEffect(other, j, o); };
    const ys = xs.map(at), own = at(row[j]), ends = [Math.min(...ys, own, 0), Math.max(...ys, own, 0)];
    const X = (x) => 40 + 560 * (x - xs[0]) / (xs.at(-1) - xs[0] || 1), Y = (y) => 150 - 130 * (y - ends[0]) / (ends[1] - ends[0] || 1);
    const svg = make("svg", { viewBox: "0 0 640 180", role: "img", "aria-label": `main effect of ${model.features[j]}: ${show(own)} here, from ${show(ends[0])} to ${show(ends[1])}` });
    svg.append(make("line", { x1: 40, x2: 600, y1: Y(0), y2: Y(0), class: "axis" }));
    if (isCode) xs.forEach((x, i) => svg.append(make("circle", { cx: X(x), cy: Y(ys[i]), r: 4, class: "up" })));
    else svg.append(make("path", { d: "M" + xs.map((x, i) => `${X(x)} ${Y(ys[i])}`).join("L"), class: "curve" }));
    const here = Number.isNaN(row[j]) ? 620 : Math.min(620, Math.max(20, X(row[j])));
    svg.append(make("circle", { cx: here, cy: Y(own), r: 7, class: "mark" }));
    const name = (i) => isCode ? column.labels[i] : show([low, high][i ? 1 : 0]);
    svg.append(make("text", { x: 40, y: 172 }, name(0)), make("text", { x: 600, y: 172, "text-anchor": "end" }, name(points - 1)));
    svg.append(make("text", { x: 40, y: 12 }, `${model.features[j]}: ${show(own)}`));
    target.replaceChildren(svg);
  }
  const flipValues = (column) => {
    if (column.categories) return column.categories;
    if (column.kind === "datetime") return [column.first, column.last];
    const { low, high } = column.features[0];
    return Array.from({ length: 9 }, (_, i) => low + (high - low) * i / 8);
  };
  let waiting = 0;
  function waterfall(each, { start, end }, last) {
    const items = each.map((value, i) => [model.features[i], value]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const rest = items.splice(15);
    if (rest.length) items.push(["all other features", rest.reduce((sum, [, v]) => sum + v, 0)]);
    let at = 0;  // each begins where the one before it ends
    const steps = [["start", start], ...items, ...last];
    bars($("whatif-parts"), [...steps.map(([name, v]) => [name, at, at += v]), ["sum", 0, end]]);
  }
  function update() {
    const o = Number($("whatif-class").value), j = Number($("whatif-feature").value);
    const score = predict(state)[o], isClass = model.classes.length > 0;
    const decided = model.threshold === null ? "" : `, decided: ${model.classes[score >= model.threshold ? 1 : 0]}`;
    $("whatif-score").textContent = show(score) + decided;
    const flips = model.sensitive.flatMap((name) => flipValues(model.columns.find((c) => c.name === name)).map((value) => {
      const other = predict({ ...state, [name]: value })[o];
      return [name, value === null ? "missing" : typeof value === "number" ? show(value) : String(value), show(other), other === score ? "0" : show(other - score)];
    }));
    table($("whatif-flips"), ["column", "set to", isClass ? "probability" : "prediction", "change"], flips);
    const hasMain = model.members[0].main[1] > 0, parts = hasMain ? explain(state, o) : null;
    clearTimeout(waiting);
    if (parts) {
      waterfall(parts.effects, parts, [["features together", parts.together]]);
      // Its shares take longer: when nothing has moved for a while.
      if (model.orders.length) waiting = setTimeout(() => waterfall(contributions(state, o), parts, []), 200);
      curve($("whatif-curve"), state, j, o);
    }
    bars($("whatif-attention"), attention(state, j).map((share, i) => [model.features[i], 0, share]).sort((a, b) => b[2] - a[2]).slice(0, 12));
  }
  model.columns.forEach((column, i) => {
    const id = `whatif-${i}`, change = (value) => { state[column.name] = value; update(); };
    const inputs = column.kind === "numeric" ? slider(column, id, change) : column.kind === "datetime" ? dates(column, id, change) : menu(column, id, change);
    const name = column.name + (model.sensitive.includes(column.name) ? " (sensitive)" : "");
    $("whatif-inputs").append(make("div", {}, make("label", { for: id }, name), ...inputs));
  });
  const classes = model.link === "softmax" ? model.classes : [model.classes[1] ?? "prediction"];
  classes.forEach((name, i) => $("whatif-class").append(make("option", { value: i }, name)));
  model.features.forEach((name, i) => $("whatif-feature").append(make("option", { value: i }, name)));
  const effects = model.features.map((_, j) => Math.abs(mainEffect(encode(state), j, 0)) || 0);
  $("whatif-feature").value = effects.indexOf(Math.max(...effects));
  for (const id of ["whatif-class", "whatif-feature"]) $(id).addEventListener("change", update);
  update();
  $("whatif").hidden = false;
})();
