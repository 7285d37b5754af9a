// The steps and who needs whom, by layers from left to right; those that run in any case come last.

const node = {width: 190, height: 54, across: 60, down: 18};

class Graph {
  constructor(model) {
    this.model = model;
  }

  render() {
    const layers = this.layers();
    const tallest = Math.max(...layers.map((layer) => layer.length));
    const places = new Map();
    layers.forEach((layer, column) =>
      layer.forEach((step, row) =>
        places.set(step.number, {
          x: 2 + column * (node.width + node.across),
          y: 2 + (row + (tallest - layer.length) / 2) * (node.height + node.down),
        }),
      ),
    );
    const width = layers.length * (node.width + node.across) - node.across + 4;
    const height = tallest * (node.height + node.down) - node.down + 4;
    const svg = draw('svg', {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: 'group',
      'aria-label': 'Steps and what they need',
    });
    for (const step of this.model.steps)
      for (const need of step.needs)
        svg.append(this.edge(places.get(need), places.get(step.number), this.model.steps[need]));
    for (const step of this.model.steps) svg.append(this.node(step, places.get(step.number)));
    byId('graph-body').replaceChildren(svg);
  }

  // A step stands one layer after the last of those it needs; within a layer, near the middle of them.
  layers() {
    const depth = new Map();
    const depthOf = (step) => {
      if (!depth.has(step.number))
        depth.set(
          step.number,
          step.needs.length === 0 ? 0 : 1 + Math.max(...step.needs.map((need) => depthOf(this.model.steps[need]))),
        );
      return depth.get(step.number);
    };
    const steps = this.model.steps.filter((step) => !step.finally);
    const layers = [];
    for (const step of steps) (layers[depthOf(step)] ||= []).push(step);
    const atLast = this.model.steps.filter((step) => step.finally);
    for (const step of atLast) (layers[Math.max(...steps.map(depthOf), -1) + 1 + depthOf(step)] ||= []).push(step);
    const rows = new Map();
    for (const layer of layers) {
      const middle = (step) =>
        step.needs.length === 0
          ? step.number
          : step.needs.reduce((sum, need) => sum + (rows.get(need) || 0), 0) / step.needs.length;
      layer.sort((a, b) => middle(a) - middle(b) || a.number - b.number);
      layer.forEach((step, row) => rows.set(step.number, row));
    }
    return layers;
  }

  edge(from, to, needed) {
    const start = {x: from.x + node.width, y: from.y + node.height / 2};
    const end = {x: to.x - 2, y: to.y + node.height / 2};
    const bend = Math.max(24, (end.x - start.x) / 2);
    const isBroken = ['failed', 'skipped', 'unreachable'].includes(needed.state);
    return draw(
      'g',
      {class: isBroken ? 'edge broken' : 'edge'},
      draw('path', {
        d: `M${start.x} ${start.y} C${start.x + bend} ${start.y} ${end.x - bend} ${end.y} ${end.x - 6} ${end.y}`,
      }),
      draw('path', {class: 'tip', d: `M${end.x} ${end.y} l-8 -4 v8 z`}),
    );
  }

  node(step, place) {
    const state = stateOfStep(step);
    const name = step.name.length > 17 ? `${step.name.slice(0, 16)}…` : step.name;
    const detail = step.has_items
      ? `${number(step.done)} of ${number(step.items)} done`
      : step.attempts > 0
        ? counted(step.attempts, 'attempt')
        : wordsOf(step.state);
    const link = draw(
      'a',
      {
        href: `#step-${step.number}`,
        class: step.finally ? 'node finally' : 'node',
        'data-state': state,
        'aria-label': `${step.name}: ${wordsOf(state)}, ${detail}`,
      },
      draw('rect', {x: place.x, y: place.y, width: node.width, height: node.height, rx: 9}),
      draw('rect', {class: 'stripe', x: place.x, y: place.y + 12, width: 5, height: node.height - 24, rx: 2.5}),
      draw('text', {class: 'name', x: place.x + 16, y: place.y + 23}, name),
      draw(
        'text',
        {class: 'detail', x: place.x + 16, y: place.y + 41},
        step.finally ? `${detail}, in any case` : detail,
      ),
      draw('text', {class: 'glyph', x: place.x + node.width - 18, y: place.y + 24}, glyphOf(state)),
    );
    return tell(link, () => ({title: `${step.name}: ${wordsOf(state)}`, state, lines: linesOfStep(this.model, step)}));
  }
}

function linesOfStep(model, step) {
  const waited = step.retries > 0 ? `, waited ${span(step.waited)}` : '';
  const retries = `${number(step.retries)} ${step.retries === 1 ? 'retry' : 'retries'}`;
  const lines = [`${counted(step.attempts, 'attempt')}, ${retries}${waited}`];
  if (step.has_items) {
    const failed = step.failed > 0 ? `, ${number(step.failed)} failed` : '';
    const rescued = step.rescued > 0 ? `, ${number(step.rescued)} of them after a failure` : '';
    lines.push(`${number(step.done)} of ${number(step.items)} done${rescued}${failed}`);
  }
  if (step.needs.length > 0) lines.push(`needs ${step.needs.map((need) => model.steps[need].name).join(', ')}`);
  if (step.finally) lines.push('runs in any case, after all others');
  if (step.calls) lines.push(`Its policy (${step.policy_from}): ${step.policy.trim().split('\n').join('; ')}`);
  return lines;
}
