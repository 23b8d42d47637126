"use strict";

// Draws the curves and lets readers choose among them. What a study calls its tasks and arms is only ever set as
// text; Plotly, which reads some HTML, is given none of it.

const { studies, axes, statistics } = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const touch = matchMedia("(pointer: coarse)").matches;
const reading = document.querySelector(".reading");
const whole = new Intl.NumberFormat("en");
const panels = studies.flatMap(prepare);

root.classList.toggle("touch", touch);
panels.forEach(drawOnceNear);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
addEventListener("scroll", hideReading, { passive: true });
addEventListener("pointerdown", hideReading);
document.querySelectorAll(".copy").forEach((button) => button.addEventListener("click", () => copy(button)));

// ---- what is shown ---------------------------------------------------------------------------------------------

function prepare(study) {
  const article = document.getElementById(study.id);
  const chosen = { axis: study.axis, statistic: Object.keys(statistics)[0], hidden: new Set() };
  const own = [...article.querySelectorAll("[data-panel]")].map((plot) => ({
    ...study.panels[plot.dataset.panel], plot, chosen, legend: study.legend, near: false,
  }));
  const buttons = [...article.querySelectorAll("[data-arm]")];

  function update() {
    for (const button of buttons) button.setAttribute("aria-pressed", !chosen.hidden.has(button.dataset.arm));
    for (const place of article.querySelectorAll("[data-shows]"))
      place.textContent = statistics[chosen[place.dataset.shows]];
    hideReading();
    own.filter((panel) => panel.near).forEach(draw);
  }

  for (const button of buttons) {
    const arm = button.dataset.arm;
    button.addEventListener("click", () => {
      if (!chosen.hidden.delete(arm)) chosen.hidden.add(arm);
      update();
    });
    button.addEventListener("dblclick", () => {
      const others = buttons.map((other) => other.dataset.arm).filter((other) => other !== arm);
      const alone = others.every((other) => chosen.hidden.has(other));
      chosen.hidden = new Set(alone ? [] : others);
      update();
    });
  }
  for (const input of article.querySelectorAll("[data-set]"))
    input.addEventListener("change", () => {
      chosen[input.dataset.set] = input.value;
      update();
    });
  update();
  return own;
}

// ---- when it is drawn ------------------------------------------------------------------------------------------

function drawOnceNear(panel) {
  const near = new IntersectionObserver(([seen]) => {
    if (!seen.isIntersecting) return;
    near.disconnect();
    show(panel);
    new ResizeObserver(() => draw(panel)).observe(panel.plot);
  }, { rootMargin: "800px" });
  near.observe(panel.plot);
}

function show(panel) {
  if (panel.near) return;
  panel.near = true;
  draw(panel);
  // A tap is a click to Plotly, and no hover.
  for (const pointed of ["plotly_hover", "plotly_click"])
    panel.plot.on(pointed, (event) => showReading(panel, event));
  panel.plot.on("plotly_unhover", hideReading);
  performance.mark("drawn");
}

function redraw() {
  panels.filter((panel) => panel.near).forEach(draw);
}

function print(starts) {
  root.classList.toggle("printing", starts);
  if (starts) panels.forEach(show);
  redraw();
}

// ---- how it is drawn -------------------------------------------------------------------------------------------

function draw(panel) {
  const arms = panel.arms.filter((arm) => !panel.chosen.hidden.has(String(arm.place)));
  const traces = [...arms.map((arm) => belt(panel, arm)), ...arms.map((arm) => line(panel, arm))];
  Plotly.react(panel.plot, traces, layout(panel), { displayModeBar: false, responsive: false });
}

function line(panel, arm) {
  const { colour, dashed } = panel.legend[arm.place];
  return {
    x: arm[panel.chosen.axis], y: arm[panel.chosen.statistic].middle, meta: arm,
    mode: arm.steps.length > 1 ? "lines" : "markers", hoverinfo: "none",
    line: { color: ink(`arm-${colour}`), width: 2, dash: dashed ? "dash" : "solid" },
    marker: { color: ink(`arm-${colour}`), size: 7 },
  };
}

function belt(panel, arm) {
  const x = arm[panel.chosen.axis];
  const { low, high } = arm[panel.chosen.statistic];
  const known = x.map((_, place) => place).filter((place) => low[place] !== null && high[place] !== null);
  const back = [...known].reverse();
  return {
    x: [...known, ...back].map((place) => x[place]),
    y: [...known.map((place) => high[place]), ...back.map((place) => low[place])],
    mode: "lines", hoverinfo: "skip", line: { width: 0 },
    fill: "toself", fillcolor: faded(ink(`arm-${panel.legend[arm.place].colour}`)),
  };
}

function layout(panel) {
  const { axis, statistic } = panel.chosen;
  const common = {
    gridcolor: ink("rule"), linecolor: ink("quiet"), zeroline: false, showline: true, ticks: "outside",
    tickcolor: ink("quiet"), ticklen: 4, nticks: 6, fixedrange: touch,
  };
  return {
    width: panel.plot.clientWidth, height: panel.plot.clientHeight,
    margin: { l: 62, r: 24, t: 10, b: 50 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink("quiet") },
    showlegend: false, hovermode: "x", dragmode: touch ? false : "zoom",
    xaxis: {
      ...common, title: { text: axes[axis], standoff: 8 }, rangemode: "tozero", tickformat: "~s", uirevision: axis,
      showspikes: true, spikemode: "across", spikedash: "solid", spikethickness: 1, spikecolor: ink("quiet"),
    },
    yaxis: {
      ...common, title: { text: `${panel.label} (${statistics[statistic]})`, standoff: 8 }, uirevision: "same",
      ...(panel.share ? { range: [-0.02, 1.02] } : {}),
    },
  };
}

function ink(name) {
  return getComputedStyle(root).getPropertyValue(`--${name}`).trim();
}

function faded(colour) {
  const parts = [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
  return `rgba(${parts.join(",")},${ink("belt")})`;
}

// ---- numbers beside the pointer --------------------------------------------------------------------------------

function showReading(panel, { points, event }) {
  const { axis, statistic } = panel.chosen;
  const rows = points
    .map(({ data, pointIndex, x }) => ({ arm: data.meta, at: pointIndex, x }))
    .map(({ arm, at, x }) => ({
      x, entry: panel.legend[arm.place],
      middle: arm[statistic].middle[at], low: arm[statistic].low[at], high: arm[statistic].high[at],
    }))
    .sort((one, other) => other.middle - one.middle);
  const table = document.createElement("table");
  for (const { entry, middle, low, high } of rows) {
    const row = table.insertRow();
    const name = document.createElement("th");
    const dot = document.createElement("span");
    dot.className = entry.dashed ? "dot ring" : "dot";
    dot.style.setProperty("--arm", `var(--arm-${entry.colour})`);
    name.append(dot, entry.name);
    row.append(name);
    row.insertCell().textContent = shown(panel, middle);
    row.insertCell().textContent = `[${shown(panel, low)}, ${shown(panel, high)}]`;
  }
  const where = document.createElement("p");
  const about = rows.every((row) => row.x === rows[0].x) ? "" : "about ";
  where.textContent = `${about}${whole.format(rows[0].x)} ${axes[axis]}`;
  reading.replaceChildren(where, table);
  reading.hidden = false;
  const right = event.clientX + 18;
  const fits = right + reading.offsetWidth < innerWidth - 8;
  const left = fits ? right : Math.max(8, event.clientX - 18 - reading.offsetWidth);
  const top = Math.min(event.clientY + 14, innerHeight - reading.offsetHeight - 8);
  reading.style.left = `${left}px`;
  reading.style.top = `${Math.max(8, top)}px`;
}

function hideReading() {
  reading.hidden = true;
}

function shown(panel, value) {
  if (value === null) return "−∞";
  return panel.share ? value.toFixed(2) : whole.format(Math.round(value));
}

// ---- the command -----------------------------------------------------------------------------------------------

async function copy(button) {
  const command = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(command.textContent);
  } catch {  // not allowed here, or not there: as of old
    getSelection().selectAllChildren(command);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}
