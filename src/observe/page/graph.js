// The steps and who needs whom, by layers from left to right; those that run in any case come last.

const node = {width: 180, height: 54, across: 48, down: 18, letters: 15};

class Graph {
  constructor(model) {
    this.model = model;
  }

  render() {
    const layers = this.layers();
    const tallest = Math.max(...layers.map((layer) => layer.length));
    layers.forEach((layer, column) => {
      layer.forEach((stop, row) => {
        stop.x = 2 + column * (node.width + node.across);
        stop.y = 2 + (row + (tallest - layer.length) / 2) * (node.height + node.down);
      });
    });
    const width = layers.length * (node.width + node.across) - node.across + 4;
    const height = tallest * (node.height + node.down) - node.down + 4;
    const label = 'Steps and what they need';
    const svg = draw('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': label});
    const stops = layers.flat();
    for (const stop of stops) svg.append(...stop.from.map((before) => this.edge(before, stop)));
    for (const stop of stops) if (stop.step) svg.append(this.node(stop.step, stop));
    byId('graph-body').replaceChildren(svg);
  }

  // A step stands one layer after the last of those it needs. An edge that passes a layer has a stop of its own there, without a step, so that
  // it runs between the steps and not behind them. Within a layer a stop is near the middle of those it comes from.
  layers() {
    const layers = [];
    const stops = new Map();
    const put = (stop, layer) => {
      (layers[layer] ||= []).push(stop);
      return stop;
    };
    const depths = this.depths();
    for (const step of this.model.steps) stops.set(step.number, put({step, from: []}, depths.get(step.number)));
    for (const step of this.model.steps) {
      for (const need of step.needs) {
        let before = stops.get(need);
        for (let layer = depths.get(need) + 1; layer < depths.get(step.number); layer += 1)
          before = put({step: null, from: [before], needed: this.model.steps[need]}, layer);
        stops.get(step.number).from.push(before);
      }
    }
    for (const layer of layers) {
      const middle = (stop) => stop.from.reduce((sum, before) => sum + before.row, 0) / stop.from.length;
      for (const stop of layer) stop.wish = stop.from.length === 0 ? stop.step.number : middle(stop);
      layer.sort((a, b) => a.wish - b.wish);
      layer.forEach((stop, row) => Object.assign(stop, {row}));
    }
    return layers;
  }

  depths() {
    const depths = new Map();
    const depthOf = (step, least) => {
      if (!depths.has(step.number)) {
        const needed = step.needs.map((need) => depthOf(this.model.steps[need], least) + 1);
        depths.set(step.number, Math.max(least, ...needed));
      }
      return depths.get(step.number);
    };
    const first = this.model.steps.filter((step) => !step.finally).map((step) => depthOf(step, 0));
    const last = Math.max(-1, ...first) + 1;
    for (const step of this.model.steps.filter((one) => one.finally)) depthOf(step, last);
    return depths;
  }

  // From stop to stop; a stop without a step is passed straight through.
  edge(from, to) {
    const middle = node.height / 2;
    const start = {x: from.x + node.width, y: from.y + middle};
    const end = {x: to.step ? to.x - 8 : to.x, y: to.y + middle};
    const bend = (end.x - start.x) / 2;
    const needed = from.step || from.needed;
    const isBroken = ['failed', 'skipped', 'unreachable'].includes(needed.state);
    const curve = `C${start.x + bend} ${start.y} ${end.x - bend} ${end.y} ${end.x} ${end.y}`;
    const line = draw('path', {d: `M${start.x} ${start.y} ${curve}${to.step ? '' : ` h${node.width}`}`});
    const tip = to.step ? draw('path', {class: 'tip', d: `M${to.x - 2} ${end.y} l-8 -4 v8 z`}) : null;
    return draw('g', {class: isBroken ? 'edge broken' : 'edge'}, line, tip);
  }

  node(step, place) {
    const state = stateOfStep(step);
    const letters = [...step.name];
    const isLong = letters.length > node.letters;
    const name = isLong ? `${letters.slice(0, node.letters - 1).join('')}…` : step.name;
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
