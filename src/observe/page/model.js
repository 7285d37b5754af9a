// The data of the page, taken apart: events with absolute times, and for each piece of work what became of it.
//
// A row is [type, microseconds since the row before, step + 1 or 0, item, attempt, …]; after that come
//   completed: all attempts, microseconds since the first began, result        retrying: next attempt, delay, reason of the delay
//   failed: bits, what failed, class, class and rule, decision, Retry-After?   fallback, reopened: words, which one
//   started: nothing                                                           others: words
// where texts are numbers in the table of texts.

const willRetry = 1;
const wasLost = 2;
const wasPrecondition = 4;
const wasCanceled = 8;

class Model {
  constructor(data) {
    this.head = data.head;
    this.steps = data.steps.map((step, number) => ({...step, number, works: new Map(), notes: []}));
    this.texts = data.texts;
    this.types = data.types;
    this.pauses = [];
    this.isCanceling = false;
    this.events = [];
    let at = this.head.created;
    for (const row of data.events) {
      at += row[1];
      const event = {
        index: this.events.length,
        type: data.types[row[0]] || 'unknown',
        at,
        step: row[2] - 1,
        item: row[3],
        attempt: row[4],
        row,
      };
      this.add(event);
      this.events.push(event);
    }
    const last = this.events.length > 0 ? this.events[this.events.length - 1].at : this.head.created;
    this.from = this.head.created;
    this.to = Math.max(last, this.head.ended || 0, this.head.is_open ? this.head.now : 0, this.from + 1000);
    for (const pause of this.pauses) if (pause.to === null) pause.to = this.to;
  }

  text(event, place) {
    return this.texts[event.row[place]];
  }

  work(step, item) {
    const works = this.steps[step].works;
    if (!works.has(item))
      works.set(item, {
        step: this.steps[step],
        item,
        state: 'untouched',
        events: [],
        failures: 0,
        attempts: 0,
        waits: 0,
        dead: false,
        heldFrom: null,
      });
    return works.get(item);
  }

  // What is drawn as done after trouble, or as a dead letter, is still done or failed for the engine.
  stateOf(work) {
    if (work.state === 'succeeded' && work.failures > 0) return 'rescued';
    return work.state === 'failed' && work.dead ? 'dead' : work.state;
  }

  nameOf(work) {
    return work.step.has_items ? `${work.step.name}[${work.item}]` : work.step.name;
  }

  add(event) {
    if (event.step < 0) this.addOfRun(event);
    else if (['prepared', 'skipped', 'unreachable', 'revisited'].includes(event.type)) this.addOfStep(event);
    else this.addOfWork(event);
  }

  addOfRun(event) {
    const open = this.pauses.find((pause) => pause.to === null);
    const before = this.events.length > 0 ? this.events[this.events.length - 1].at : this.head.created;
    if (event.type === 'paused') this.pauses.push({kind: 'pause', from: event.at, to: null});
    if (open && ['resumed', 'ended', 'cancel_requested'].includes(event.type)) open.to = event.at;
    if (event.type === 'recovered') this.pauses.push({kind: 'gone', from: before, to: event.at});
    if (event.type === 'cancel_requested') this.isCanceling = true;
    if (event.type === 'reopened') {
      this.pauses.push({kind: 'over', from: before, to: event.at});
      this.reopen(this.text(event, 6) !== '');
    }
  }

  addOfStep(event) {
    this.steps[event.step].notes.push(event);
    if (event.type !== 'revisited') return;
    const again = new Set([event.step]);
    for (let size = 0; size !== again.size;) {
      size = again.size;
      for (const step of this.steps) if (step.needs.some((need) => again.has(need))) again.add(step.number);
    }
    for (const number of again) this.forget(this.steps[number]);
  }

  forget(step) {
    for (const work of step.works.values()) Object.assign(work, {state: 'untouched', failures: 0, dead: false});
  }

  // Which item is tried again shows only when it starts, if it was limited to one.
  reopen(isLimited) {
    this.isCanceling = false;
    for (const step of this.steps) {
      if (step.finally) this.forget(step);
      for (const work of step.works.values()) {
        if (work.state === 'canceled' || (work.state === 'failed' && !isLimited))
          Object.assign(work, {state: 'waiting', dead: false});
      }
    }
  }

  addOfWork(event) {
    const work = this.work(event.step, event.item);
    const hadStarted = work.attempts > 0;
    work.events.push(event);
    if (event.type === 'started') Object.assign(work, {state: 'running', attempts: work.attempts + 1});
    if (event.type === 'completed') {
      work.state = 'succeeded';
      if (!hadStarted) work.heldFrom = this.readySince(work.step);
    }
    if (event.type === 'failed') {
      const bits = event.row[5];
      work.failures += 1;
      work.state = bits & willRetry ? 'waiting' : bits & wasCanceled ? 'canceled' : 'failed';
    }
    if (event.type === 'retrying') Object.assign(work, {state: 'waiting', waits: work.waits + 1});
    if (event.type === 'fallback') work.state = 'waiting';
    if (event.type === 'interrupted') work.state = this.isCanceling ? 'canceled' : 'waiting';
    if (event.type === 'dead_lettered') work.dead = true;
    if (event.type === 'dropped') work.dead = false;
  }

  // A step that only waits has no attempts: it began when what it needs was over.
  readySince(step) {
    let since = this.head.created;
    for (const need of step.needs) {
      for (const work of this.steps[need].works.values()) {
        if (work.events.length > 0) since = Math.max(since, work.events[work.events.length - 1].at);
      }
    }
    return since;
  }

  // Attempts and waits of one piece of work, in order: {kind, outcome, from, to, isOpen, attempt, title, lines}.
  segmentsOf(work) {
    const segments = [];
    let open = null;
    let way = '';
    const close = (event, outcome, lines) => {
      if (open === null) return;
      Object.assign(open, {to: event.at, outcome: outcome || open.outcome, isOpen: false});
      open.lines.push(...lines);
      open = null;
    };
    const begin = (event, segment) => {
      open = {from: event.at, to: this.to, isOpen: true, work, lines: [], ...segment};
      segments.push(open);
    };
    for (const event of work.events) {
      if (event.type === 'started') {
        close(event, null, []);
        begin(event, {kind: 'attempt', outcome: 'running', attempt: event.attempt, way});
      } else if (event.type === 'completed') {
        if (open === null && work.heldFrom !== null)
          begin({at: work.heldFrom}, {kind: 'hold', outcome: 'succeeded', attempt: 0, way: ''});
        close(event, 'succeeded', this.text(event, 7) === '' ? [] : [`Result: ${this.text(event, 7)}`]);
        way = '';
      } else if (event.type === 'failed') {
        if (open === null) begin(event, {kind: 'refusal', outcome: 'failed', attempt: event.attempt, way});
        close(
          event,
          event.row[5] & wasLost ? 'lost' : event.row[5] & wasCanceled ? 'canceled' : 'failed',
          this.failureLines(event),
        );
        segments[segments.length - 1].failed = event;
      } else if (event.type === 'retrying') {
        begin(event, {kind: 'wait', outcome: 'waiting', attempt: event.row[5], way, retrying: event});
      } else if (event.type === 'interrupted') {
        close(event, open && open.kind === 'attempt' ? 'canceled' : null, ['It was interrupted.']);
      } else if (event.type === 'fallback') {
        way = this.text(event, 6) || 'fallback';
      }
    }
    return segments;
  }

  failureLines(event) {
    const lines = [this.text(event, 6)];
    if (event.row[5] & wasLost) lines.push('The engine died during this attempt, which counts as a failure.');
    if (event.row.length > 10) lines.push(`The other side asked for a wait of ${span(event.row[10])} (Retry-After).`);
    lines.push(this.text(event, 8), this.text(event, 9));
    return lines;
  }

  // What is told about a segment: {title, state, lines}.
  tipOf(segment) {
    const name = this.nameOf(segment.work);
    const took = span(segment.to - segment.from);
    const when = `${clock(segment.from)}${segment.isOpen ? '' : ` to ${clock(segment.to)}`}`;
    if (segment.kind === 'wait') return this.tipOfWait(segment, name, took, when);
    if (segment.kind === 'refusal')
      return {title: `${name} was not begun`, state: 'failed', lines: [...segment.lines, when]};
    if (segment.kind === 'hold')
      return {title: `${name} waited ${took}`, state: 'succeeded', lines: [...segment.lines, when]};
    const ends = {
      running: `is running for ${took}`,
      succeeded: `succeeded in ${took}`,
      failed: `failed after ${took}`,
      lost: `was lost after ${took} at most`,
      canceled: `was stopped after ${took}`,
    };
    const limit = segment.work.step.max_attempts;
    const which = `attempt ${segment.attempt}${limit !== null && segment.attempt <= limit ? ` of ${limit}` : ''}`;
    const way = segment.way === '' ? '' : ` (its ${segment.way})`;
    return {
      title: `${name}, ${which}${way} ${ends[segment.outcome]}`,
      state: segment.outcome,
      lines: [...segment.lines, when],
    };
  }

  tipOfWait(segment, name, took, when) {
    const delay = segment.retrying.row[6];
    const reason = this.text(segment.retrying, 7);
    const lines = [`The wait is ${span(delay)}, ${reason}.`];
    const before = segment.work.events
      .filter((event) => event.type === 'failed' && event.index < segment.retrying.index)
      .pop();
    if (before) lines.push(`After: ${this.text(before, 6)}`, this.text(before, 8), this.text(before, 9));
    if (before && before.row.length > 10)
      lines.push(`The other side asked for a wait of ${span(before.row[10])} (Retry-After).`);
    const verb = segment.isOpen ? 'waits until' : 'waited';
    const howLong = segment.isOpen ? clock(segment.from + delay) : took;
    return {
      title: `${name} ${verb} ${howLong} before attempt ${segment.attempt}`,
      state: 'waiting',
      lines: [...lines, ...segment.lines, when],
    };
  }

  tipOfPause(pause) {
    const when = `${clock(pause.from)} to ${clock(pause.to)}`;
    const took = span(pause.to - pause.from);
    if (pause.kind === 'pause') {
      const lines = ['Somebody paused it. Nothing starts during a pause.', when];
      return {title: `The run was paused for ${took}`, state: 'paused', lines};
    }
    if (pause.kind === 'over') {
      const lines = ['It had ended. Then somebody asked to try again what had failed.', when];
      return {title: `The run was over for ${took}`, state: 'untouched', lines};
    }
    return {
      title: `Nobody worked for ${took} at most`,
      state: 'lost',
      lines: [
        'The engine died after its last event, and was started again. Attempts that were running count as lost.',
        when,
      ],
    };
  }

  tipOfWork(work) {
    const state = this.stateOf(work);
    const lines = [
      `${counted(work.attempts, 'attempt')}, ${counted(work.failures, 'failure')}, ${counted(work.waits, 'wait')}`,
    ];
    for (const segment of this.segmentsOf(work).slice(0, 12)) {
      const took = span(segment.to - segment.from);
      const end = segment.failed ? this.text(segment.failed, 6) : `${wordsOf(segment.outcome)}, ${took}`;
      const told = segment.kind === 'wait' ? `waited ${took}` : `attempt ${segment.attempt}: ${end}`;
      lines.push(`${glyphOf(segment.outcome)} ${told}`);
    }
    return {title: `${this.nameOf(work)}: ${wordsOf(state)}`, state, lines};
  }

  // One line about an event, for the table.
  wordsOf(event) {
    const limit = event.step >= 0 ? this.steps[event.step].max_attempts : null;
    const attempt = `attempt ${event.attempt}${limit !== null && event.attempt <= limit ? `/${limit}` : ''}`;
    switch (event.type) {
      case 'started':
        return `${attempt} started`;
      case 'completed': {
        const after = event.row[5] > 0 ? ` after ${counted(event.row[5], 'attempt')} in ${span(event.row[6])}` : '';
        return `done${after}${this.text(event, 7) === '' ? '' : `: ${this.text(event, 7)}`}`;
      }
      case 'failed': {
        const which = event.row[5] & wasPrecondition ? 'its precondition' : attempt;
        return `${which} failed: ${this.text(event, 6)} (${this.text(event, 7)}). ${this.text(event, 9)}`;
      }
      case 'retrying':
        return `waits ${span(event.row[6])} before attempt ${event.row[5]}, ${this.text(event, 7)}`;
      default:
        return this.text(event, 5);
    }
  }
}
