// One row a step, in the order of the plan; attempts, waits and pauses as segments on one scale of time.

const segmentsMax = 400; // in one row; more are drawn as bars that tell how many there were
const lanesMax = 12; // a step with so few items has a row for each
const barsPerRow = 96;
const zooms = [1, 2, 4, 8, 16, 32];

class Timeline {
  constructor(model, openStory) {
    this.model = model;
    this.openStory = openStory;
    this.zoom = 0;
    this.body = byId('timeline-body');
    this.rows = []; // of segments, for the arrow keys
  }

  share(at) {
    return (at - this.model.from) / (this.model.to - this.model.from);
  }

  render() {
    this.axis = make('div', {class: 'axis', 'aria-hidden': 'true'});
    this.inner = make(
      'div',
      {class: 'rows'},
      make('div', {class: 'row axis-row'}, make('div', {class: 'label'}, ''), this.axis),
    );
    if (this.model.pauses.length > 0) this.addRunRow();
    for (const step of this.model.steps) this.addStep(step);
    this.body.replaceChildren(
      make(
        'div',
        {class: 'scroll timeline', role: 'group', 'aria-label': 'Timeline: arrow keys walk through it'},
        this.inner,
      ),
    );
    this.scroller = this.body.firstChild;
    this.addBands();
    this.addZoom();
    this.addLegend();
    this.drawAxis();
    this.body.addEventListener('keydown', (event) => this.walk(event));
    addEventListener('resize', () => this.drawAxis());
    const first = this.inner.querySelector('.segment');
    if (first) first.tabIndex = 0;
  }

  // ---- rows ------------------------------------------------------------------------------------

  addRow(label, segments, attributes = {}) {
    const track = make('div', {class: 'track'}, segments);
    const row = make('div', {class: 'row', ...attributes}, make('div', {class: 'label'}, label), track);
    this.inner.append(row);
    this.rows.push(segments);
    return {row, track};
  }

  addRunRow() {
    this.addRow(
      [make('span', {class: 'name'}, 'the run')],
      this.model.pauses.map((pause) => {
        const state = {pause: 'paused', gone: 'lost', over: 'untouched'}[pause.kind];
        return this.segment(pause.kind, state, pause.from, pause.to, () => this.model.tipOfPause(pause), null);
      }),
      {class: 'row run'},
    );
  }

  addStep(step) {
    const label = [
      make(
        'span',
        {class: 'glyph', 'data-state': stateOfStep(step), 'aria-hidden': 'true'},
        glyphOf(stateOfStep(step)),
      ),
      make('span', {class: 'name'}, step.name),
    ];
    const works = [...step.works.values()].sort((a, b) => a.item - b.item);
    const id = {id: `step-${step.number}`};
    if (works.length === 0) {
      const {track} = this.addRow(label, [], id);
      track.append(
        make('span', {class: 'remark'}, wordsOf(!step.calls && step.state === 'active' ? 'waiting' : step.state)),
      );
    } else if (step.has_items && works.length <= lanesMax) {
      this.addRow([...label, make('span', {class: 'count'}, counted(step.items, 'item'))], [], {
        ...id,
        class: 'row parent',
      });
      for (const work of works)
        this.addWork(work, [make('span', {class: 'name'}, `[${work.item}]`)], {class: 'row lane'});
    } else if (step.has_items) {
      this.addBars(step, works, [...label, make('span', {class: 'count'}, counted(step.items, 'item'))], id);
    } else {
      this.addWork(works[0], label, id);
    }
  }

  addWork(work, label, attributes) {
    const segments = this.model.segmentsOf(work);
    if (segments.length > segmentsMax) this.addBars(work.step, [work], label, attributes);
    else
      this.addRow(
        label,
        segments.map((segment) => this.segmentOf(segment)),
        attributes,
      );
  }

  segmentOf(segment) {
    const element = this.segment(
      segment.kind,
      segment.outcome,
      segment.from,
      segment.to,
      () => this.model.tipOf(segment),
      () => this.openStory(segment.work),
    );
    if (segment.way) element.classList.add('other-way');
    return element;
  }

  segment(kind, state, from, to, teller, act) {
    const element = make('button', {
      type: 'button',
      class: 'segment',
      'data-kind': kind,
      'data-state': state,
      tabindex: '-1',
      'aria-label': teller().title,
    });
    element.style.setProperty('--at', `${this.share(from) * 100}%`);
    element.style.width = `${Math.max(0, this.share(to) - this.share(from)) * 100}%`;
    if (kind !== 'wait') element.append(make('span', {class: 'glyph', 'aria-hidden': 'true'}, glyphOf(state)));
    if (act) element.addEventListener('click', act);
    return tell(element, teller);
  }

  // ---- many items in one row -------------------------------------------------------------------

  addBars(step, works, label, attributes) {
    const bars = Array.from({length: barsPerRow}, () => ({running: 0, begun: 0, failed: 0, waits: 0}));
    const width = (this.model.to - this.model.from) / barsPerRow;
    const barAt = (at) => Math.min(barsPerRow - 1, Math.max(0, Math.floor((at - this.model.from) / width)));
    let attempts = 0;
    let waits = 0;
    for (const work of works) {
      for (const segment of this.model.segmentsOf(work)) {
        const last = barAt(segment.to);
        if (segment.kind === 'wait') {
          waits += 1;
          bars[barAt(segment.from)].waits += 1;
          continue;
        }
        if (segment.kind === 'attempt') attempts += 1;
        for (let bar = barAt(segment.from); bar <= last; bar += 1) bars[bar].running += 1;
        bars[barAt(segment.from)].begun += 1;
        if (segment.failure) bars[last].failed += 1;
      }
    }
    const most = Math.max(1, ...bars.map((bar) => bar.running));
    const elements = bars.map((bar, place) => this.bar(step, bar, most, this.model.from + place * width, width));
    const {row} = this.addRow(label, elements, {class: 'row bars', ...attributes});
    Object.assign(row.dataset, {attempts, waits});
  }

  bar(step, bar, most, from, width) {
    const element = make('button', {
      type: 'button',
      class: 'segment bar',
      'data-kind': 'bar',
      'data-state': bar.failed > 0 ? 'failed' : 'succeeded',
      tabindex: '-1',
    });
    element.style.setProperty('--at', `${this.share(from) * 100}%`);
    element.style.width = `${100 / barsPerRow}%`;
    const well = bar.running - bar.failed;
    for (const [part, below, count] of [
      ['well', 0, well],
      ['badly', well, bar.failed],
    ]) {
      const piece = make('span', {class: part});
      piece.style.setProperty('--from', `${(below / most) * 100}%`);
      piece.style.setProperty('--high', `${(count / most) * 100}%`);
      element.append(piece);
    }
    const tip = {
      title: `${step.name}: ${counted(bar.running, 'attempt')} at work`,
      state: bar.failed > 0 ? 'failed' : 'running',
      lines: [
        `${number(bar.begun)} began, ${number(bar.failed)} failed, ${counted(bar.waits, 'wait')} began`,
        `${clock(from)} to ${clock(from + width)}`,
      ],
    };
    element.setAttribute('aria-label', tip.title);
    element.addEventListener('click', () => byId(`items-${step.number}`)?.scrollIntoView({block: 'center'}));
    return tell(element, () => tip);
  }

  // ---- around the rows -------------------------------------------------------------------------

  addBands() {
    for (const row of this.inner.querySelectorAll('.row:not(.axis-row, .run) .track')) {
      for (const pause of this.model.pauses) {
        const band = make('div', {class: 'band', 'data-kind': pause.kind, 'aria-hidden': 'true'});
        band.style.left = `${this.share(pause.from) * 100}%`;
        band.style.width = `${(this.share(pause.to) - this.share(pause.from)) * 100}%`;
        row.prepend(band);
      }
    }
  }

  addZoom() {
    const set = (zoom) => {
      const middle = (this.scroller.scrollLeft + this.scroller.clientWidth / 2) / this.scroller.scrollWidth;
      this.zoom = Math.min(zooms.length - 1, Math.max(0, zoom));
      this.inner.style.setProperty('--zoom', zooms[this.zoom]);
      this.scroller.scrollLeft = middle * this.scroller.scrollWidth - this.scroller.clientWidth / 2;
      this.drawAxis();
    };
    byId('zoom').replaceChildren(
      button('−', () => set(this.zoom - 1), {'aria-label': 'Zoom out', class: 'quiet'}),
      button('+', () => set(this.zoom + 1), {'aria-label': 'Zoom in', class: 'quiet'}),
      button('All', () => set(0), {'aria-label': 'Show all of it', class: 'quiet'}),
    );
  }

  addLegend() {
    const states = new Set(
      [
        ...this.inner.querySelectorAll(
          '.segment:not(.bar, [data-kind="wait"], [data-kind="pause"], [data-kind="gone"], [data-kind="over"])',
        ),
      ].map((element) => element.dataset.state),
    );
    const sample = (kind, state) =>
      make(
        'span',
        {class: 'segment sample', 'data-kind': kind, 'data-state': state, 'aria-hidden': 'true'},
        kind === 'wait' ? '' : make('span', {class: 'glyph'}, glyphOf(state)),
      );
    const entry = (kind, state, words) => make('span', {class: 'entry'}, sample(kind, state), words);
    const legend = byId('timeline-legend');
    legend.replaceChildren();
    for (const state of ['succeeded', 'failed', 'lost', 'canceled', 'running'])
      if (states.has(state))
        legend.append(entry('attempt', state, state === 'succeeded' ? 'succeeded' : wordsOf(state)));
    if (this.inner.querySelector('[data-kind="wait"]'))
      legend.append(entry('wait', 'waiting', 'wait between attempts'));
    if (this.inner.querySelector('.other-way')) {
      const other = entry('attempt', 'succeeded', 'fallback or failure handler');
      other.firstChild.classList.add('other-way');
      legend.append(other);
    }
    if (this.model.pauses.some((pause) => pause.kind === 'pause')) legend.append(entry('pause', 'paused', 'paused'));
    if (this.model.pauses.some((pause) => pause.kind === 'gone'))
      legend.append(entry('gone', 'lost', 'the engine was gone'));
    if (this.model.pauses.some((pause) => pause.kind === 'over'))
      legend.append(entry('over', 'untouched', 'the run was over, and was taken up again'));
    if (this.inner.querySelector('.bar'))
      legend.append(
        make(
          'span',
          {class: 'entry'},
          make(
            'span',
            {class: 'bar-sample', 'aria-hidden': 'true'},
            make('span', {class: 'badly'}),
            make('span', {class: 'well'}),
          ),
          'attempts at work, those that failed hatched',
        ),
      );
  }

  drawAxis() {
    const length = this.model.to - this.model.from;
    const room = Math.max(2, Math.floor(this.axis.clientWidth / 90));
    const step = niceStep(length / room);
    this.axis.replaceChildren();
    this.inner.style.setProperty('--tick', `${(step / length) * 100}%`);
    for (let at = 0; at <= length; at += step) {
      const tick = make('span', {class: 'tick'}, at === 0 ? '0' : `+${span(at)}`);
      tick.style.left = `${(at / length) * 100}%`;
      if (at / length > 0.96) tick.classList.add('last');
      this.axis.append(tick);
    }
  }

  // ---- by keyboard -----------------------------------------------------------------------------

  walk(event) {
    const target = event.target.closest('.segment');
    const row = this.rows.findIndex((segments) => segments.includes(target));
    if (row < 0) return;
    const place = this.rows[row].indexOf(target);
    const next = {
      ArrowRight: () => this.rows[row][place + 1],
      ArrowLeft: () => this.rows[row][place - 1],
      Home: () => this.rows[row][0],
      End: () => this.rows[row].at(-1),
      ArrowDown: () => this.inRow(row, 1, target),
      ArrowUp: () => this.inRow(row, -1, target),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    const element = next();
    if (!element) return;
    target.tabIndex = -1;
    element.tabIndex = 0;
    element.focus();
  }

  // The segment of the next row that has any, nearest in time.
  inRow(row, direction, target) {
    const left = (element) => parseFloat(element.style.getPropertyValue('--at'));
    for (let at = row + direction; at >= 0 && at < this.rows.length; at += direction) {
      if (this.rows[at].length > 0)
        return this.rows[at].reduce((best, one) =>
          Math.abs(left(one) - left(target)) < Math.abs(left(best) - left(target)) ? one : best,
        );
    }
    return null;
  }
}

// 1, 2 or 5 of a unit; whole minutes and hours beyond one.
function niceStep(least) {
  const steps = [];
  for (let unit = 1; unit < 6e7; unit *= 10) steps.push(unit, 2 * unit, 5 * unit);
  const long = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * 6e7);
  const found = [...steps.filter((step) => step < 6e7), ...long].find((step) => step >= least);
  return found || Math.ceil(least / 8.64e10) * 8.64e10;
}

// A step that is done, but not at the first try, says so.
function stateOfStep(step) {
  return step.state === 'succeeded' && (step.rescued > 0 || step.failed > 0) ? 'rescued' : step.state;
}
