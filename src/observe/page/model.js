// The data of the page, taken apart. What became of each piece of work is worked out before it gets here (observe/projection.hpp).
//
// Times are microseconds: of works and standstills since the run was created, of events since the event before. Texts are numbers in the table
// of texts. A piece of work is [step, item, state, attempts started, failures, waits, segments]; a segment is
//   [kind, outcome, from, to or null, attempt, way, …] with kind attempt, refusal (it failed before it began) or hold (a step that only waits)
//     and then, if it failed: what failed, class and rule, decision, Retry-After?; if it succeeded: result
//   ['wait', 'waiting', from, to or null, next attempt, way, delay, reason of the delay, was it interrupted]
// An event is [type, time, step + 1 or 0, item, attempt, …]; after that come
//   completed: all attempts, microseconds since the first began, result        retrying: next attempt, delay, reason of the delay
//   failed: bits, what failed, class, class and rule, decision, Retry-After?   started: nothing        others: words

const wasPrecondition = 4; // a bit of `failed`

class Model {
  constructor(data) {
    this.head = data.head;
    this.steps = data.steps.map((step, number) => ({...step, number, works: new Map()}));
    this.texts = data.texts;
    this.types = data.types;
    let at = this.head.created;
    this.events = data.events.map((row, index) => {
      at += row[1];
      return {index, type: data.types[row[0]] || 'unknown', at, step: row[2] - 1, item: row[3], attempt: row[4], row};
    });
    this.from = this.head.created;
    this.to = Math.max(at, this.head.ended || 0, this.head.is_open ? this.head.now : 0, this.from + 1000);
    this.pauses = data.standstills.map(([kind, from, to]) => ({kind, from: this.timeOf(from), to: this.timeOf(to)}));
    for (const [step, item, state, attempts, failures, waits, segments] of data.works)
      this.steps[step].works.set(item, {step: this.steps[step], item, state, attempts, failures, waits, segments});
  }

  // What goes on still goes on at the end of the page.
  timeOf(sinceCreated) {
    return sinceCreated === null ? this.to : this.from + sinceCreated;
  }

  text(event, place) {
    return this.texts[event.row[place]];
  }

  nameOf(work) {
    return work.step.has_items ? `${work.step.name}[${work.item}]` : work.step.name;
  }

  // Attempts and waits of one piece of work, in order: {kind, outcome, from, to, isOpen, attempt, way, lines, failure?, delay?, reason?}.
  segmentsOf(work) {
    return work.segments.map(([kind, outcome, from, to, attempt, way, ...rest]) => {
      const segment = {work, kind, outcome, from: this.timeOf(from), to: this.timeOf(to), isOpen: to === null, attempt, way, lines: []};
      if (kind === 'wait') this.addWait(segment, rest);
      else if (outcome === 'succeeded') this.addResult(segment, rest);
      else if (rest.length > 0) this.addFailure(segment, rest);
      else if (!segment.isOpen) segment.lines.push('It was interrupted.');
      return segment;
    });
  }

  addWait(segment, [delay, reason, wasInterrupted]) {
    Object.assign(segment, {delay, reason: this.texts[reason]});
    if (wasInterrupted) segment.lines.push('It was interrupted.');
  }

  addResult(segment, [result]) {
    if (this.texts[result] !== '') segment.lines.push(`Result: ${this.texts[result]}`);
  }

  addFailure(segment, [what, rule, decision, retryAfter, left]) {
    const asked = retryAfter === null ? [] : [`The other side asked for a wait of ${span(retryAfter)} (Retry-After).`];
    const lost = segment.outcome === 'lost' ? ['The engine died during this attempt: it is lost, and not one of those that count.'] : [];
    const reasons = [this.texts[rule], this.texts[decision]].filter((reason) => reason !== '');
    segment.failure = {what: this.texts[what], reasons, asked, left: left === undefined ? '' : this.texts[left]};
    segment.lines.push(segment.failure.what, ...lost, ...asked, ...reasons);
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
    const lines = [`The wait is ${span(segment.delay)}, ${segment.reason}.`];
    const before = this.segmentsOf(segment.work)
      .filter((one) => one.failure && one.from <= segment.from)
      .pop();
    if (before) lines.push(`After: ${before.failure.what}`, ...before.failure.reasons, ...before.failure.asked);
    const verb = segment.isOpen ? 'waits until' : 'waited';
    const howLong = segment.isOpen ? clock(segment.from + segment.delay) : took;
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
    const lines = [
      `${counted(work.attempts, 'attempt')}, ${counted(work.failures, 'failure')}, ${counted(work.waits, 'wait')}`,
    ];
    for (const segment of this.segmentsOf(work).slice(0, 12)) {
      const took = span(segment.to - segment.from);
      const end = segment.failure ? segment.failure.what : `${wordsOf(segment.outcome)}, ${took}`;
      const told = segment.kind === 'wait' ? `waited ${took}` : `attempt ${segment.attempt}: ${end}`;
      lines.push(`${glyphOf(segment.outcome)} ${told}`);
    }
    return {title: `${this.nameOf(work)}: ${wordsOf(work.state)}`, state: work.state, lines};
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
