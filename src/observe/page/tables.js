// What stands in tables: the attempts of one piece of work, everything that failed, the steps in numbers, and all events.

const attemptsMax = 200;  // in one table
const troubledMax = 200;  // pieces of work with a table
const eventsPerPage = 100;

function table(headings, rows, attributes = {}) {
  const cell = (tag, content) => {
    const {numeric, value} = content !== null && typeof content === 'object' && 'value' in content ? content : {numeric: false, value: content};
    return make(tag, numeric ? {class: 'numeric'} : {}, value);
  };
  return make('table', attributes, make('thead', {}, make('tr', {}, headings.map((heading) => cell('th', heading)))),
    make('tbody', {}, rows.map((row) => make('tr', {}, row.map((content) => cell('td', content))))));
}

const numeric = (value) => ({numeric: true, value: typeof value === 'number' ? number(value) : value});

// ---- one piece of work ---------------------------------------------------------------------------

function attemptsTable(model, work) {
  const segments = model.segmentsOf(work);
  const attempts = segments.filter((segment) => segment.kind !== 'wait');
  const rows = attempts.slice(0, attemptsMax).map((segment) => {
    const next = segments[segments.indexOf(segment) + 1];
    const wait = next && next.kind === 'wait' ? [make('b', {}, span(next.retrying.row[6])), `, ${model.text(next.retrying, 7)}`] : [];
    const words = segment.lines.map((line, place) => make('span', {class: place === 0 ? 'line first' : 'line'}, line));
    return [numeric(segment.attempt > 0 ? segment.attempt : '–'), clock(segment.from), numeric(segment.kind === 'refusal' ? '' : span(segment.to - segment.from)),
      make('span', {}, badge(segment.outcome), segment.way ? make('span', {class: 'way'}, `its ${segment.way}`) : null), make('span', {class: 'outside'}, words), make('span', {}, wait)];
  });
  const box = make('div', {class: 'scroll'}, table([numeric('Attempt'), 'Began', numeric('Took'), 'Outcome', 'What happened, and what was decided', 'Then waited'], rows, {class: 'attempts'}));
  if (attempts.length <= attemptsMax) return box;
  return make('div', {}, box, make('p', {class: 'note'}, `… and ${number(attempts.length - attemptsMax)} more attempts. reprise why lists them all.`));
}

function openStory(model, work) {
  const dialog = byId('story');
  const close = button('Close', () => dialog.close(), {class: 'quiet'});
  const tip = model.tipOfWork(work);
  dialog.replaceChildren(make('div', {class: 'title'}, make('h2', {id: 'story-title', class: 'outside'}, model.nameOf(work)), close),
    make('p', {}, badge(tip.state), ` ${tip.lines[0]}`), attemptsTable(model, work));
  dialog.showModal();
  close.focus();
}

// ---- failures ------------------------------------------------------------------------------------

function renderFailures(model) {
  const order = ['failed', 'dead', 'canceled', 'waiting', 'running', 'untouched', 'rescued'];
  const troubled = model.steps.flatMap((step) => [...step.works.values()]).filter((work) => work.events.some((event) => event.type === 'failed'));
  const rank = (work) => order.indexOf(model.stateOf(work));
  troubled.sort((a, b) => rank(a) - rank(b) || a.step.number - b.step.number || a.item - b.item);
  const body = byId('failures-body');
  if (troubled.length === 0) {
    body.replaceChildren(make('p', {class: 'note'}, 'Nothing failed, not even once.'));
    return;
  }
  const isForGood = (work) => ['failed', 'dead'].includes(model.stateOf(work));
  const forGood = troubled.filter(isForGood).length;
  const mended = troubled.filter((work) => model.stateOf(work) === 'rescued').length;
  body.replaceChildren(make('p', {class: 'hint'}, `${number(troubled.length)} of all pieces of work failed at least once: ${number(forGood)} for good, ${number(mended)} made good by a later attempt.`),
    ...troubled.slice(0, troubledMax).map((work, place) => trouble(model, work, place < 2)));
  if (troubled.length > troubledMax) body.append(make('p', {class: 'note'}, `… and ${number(troubled.length - troubledMax)} more. They are in the grids above, and reprise why tells about each of them.`));
}

function trouble(model, work, isOpen) {
  const last = work.events.filter((event) => event.type === 'failed').pop();
  const details = make('details', {class: 'trouble'}, make('summary', {}, badge(model.stateOf(work)), make('b', {class: 'outside'}, model.nameOf(work)),
    make('span', {class: 'outside quietly'}, `${counted(work.attempts, 'attempt')}, last failure: ${model.text(last, 6)}`)));
  details.addEventListener('toggle', () => { if (details.open && details.children.length === 1) details.append(attemptsTable(model, work)); });
  details.open = isOpen;
  return details;
}

// ---- steps in numbers ----------------------------------------------------------------------------

function renderStatistics(model) {
  const rows = model.steps.map((step) => {
    const took = step.first !== null && step.last !== null ? Math.max(0, step.last - step.first) : 0;
    const items = step.has_items ? `${number(step.done)} of ${number(step.items)}` : '';
    return [make('span', {class: 'outside'}, step.name), badge(stateOfStep(step)), numeric(items), numeric(step.attempts), numeric(step.retries), numeric(step.rescued), numeric(step.failed),
      numeric(step.lost), numeric(step.retries > 0 ? span(step.waited) : ''), numeric(step.first === null ? '' : span(took))];
  });
  const sum = (member) => model.steps.reduce((total, step) => total + step[member], 0);
  const box = table(['Step', 'State', 'Items done', 'Attempts', 'Retries', 'Made good', 'Failed', 'Lost', 'Waited', 'Duration'].map((name, place) => (place < 2 ? name : numeric(name))), rows, {class: 'statistics'});
  box.append(make('tfoot', {}, make('tr', {}, make('td', {}, 'all'), make('td', {}), make('td', {}), ...['attempts', 'retries', 'rescued', 'failed', 'lost'].map((member) => make('td', {class: 'numeric'}, number(sum(member)))),
    make('td', {class: 'numeric'}, span(sum('waited'))), make('td', {class: 'numeric'}, span(model.to - model.from)))));
  byId('statistics-body').replaceChildren(box);
}

// ---- events --------------------------------------------------------------------------------------

class Events {
  constructor(model) {
    this.model = model;
    this.found = model.events;
    this.page = 0;
  }

  render() {
    const options = (names) => names.map(([value, words]) => make('option', {value}, words));
    const types = [...new Set(this.model.events.map((event) => event.type))].sort();
    this.step = make('select', {id: 'of-step'}, options([['', 'any step'], ['-1', 'the run itself'], ...this.model.steps.map((step) => [String(step.number), step.name])]));
    this.type = make('select', {id: 'of-type'}, options([['', 'any type'], ...types.map((type) => [type, type])]));
    this.text = make('input', {id: 'with-text', type: 'search', placeholder: 'text, or fetch[57]', autocomplete: 'off', spellcheck: 'false'});
    this.count = make('span', {class: 'count', role: 'status'});
    this.rows = make('div', {class: 'scroll'});
    this.pager = make('div', {class: 'tools'});
    const field = (words, input) => make('label', {}, make('span', {}, words), input);
    byId('events-body').replaceChildren(make('div', {class: 'filters'}, field('Step', this.step), field('Type', this.type), field('Text', this.text), this.count, this.pager), this.rows);
    for (const input of [this.step, this.type]) input.addEventListener('change', () => this.filter());
    this.text.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.filter(), 120);
    });
    this.show(0);
  }

  placeOf(event) {
    if (event.step < 0) return 'the run';
    const step = this.model.steps[event.step];
    const isOfStep = ['prepared', 'skipped', 'unreachable', 'revisited'].includes(event.type);
    return step.has_items && !isOfStep ? `${step.name}[${event.item}]` : step.name;
  }

  filter() {
    const wanted = this.text.value.trim().toLowerCase();
    const fits = (event) => (this.step.value === '' || event.step === Number(this.step.value)) && (this.type.value === '' || event.type === this.type.value) &&
      (wanted === '' || `${this.placeOf(event)} ${event.type} ${this.model.wordsOf(event)}`.toLowerCase().includes(wanted));
    this.found = this.model.events.filter(fits);
    this.show(0);
  }

  show(page) {
    const pages = Math.max(1, Math.ceil(this.found.length / eventsPerPage));
    this.page = Math.min(pages - 1, Math.max(0, page));
    const rows = this.found.slice(this.page * eventsPerPage, (this.page + 1) * eventsPerPage).map((event) => [numeric(event.index + 1), clock(event.at), make('span', {class: 'outside'}, this.placeOf(event)),
      make('span', {class: 'type', 'data-type': event.type}, event.type), make('span', {class: 'outside'}, this.model.wordsOf(event))]);
    this.rows.replaceChildren(table([numeric('No.'), 'Time', 'Work', 'Type', 'What happened'], rows, {class: 'events'}));
    this.count.textContent = this.found.length === this.model.events.length ? counted(this.found.length, 'event') : `${number(this.found.length)} of ${counted(this.model.events.length, 'event')}`;
    const go = (words, to, label) => {
      const element = button(words, () => this.show(to), {class: 'quiet', 'aria-label': label});
      element.disabled = to === this.page || to < 0 || to >= pages;
      return element;
    };
    this.pager.replaceChildren(go('«', 0, 'First page'), go('‹', this.page - 1, 'Page before'), make('span', {}, `page ${number(this.page + 1)} of ${number(pages)}`),
      go('›', this.page + 1, 'Next page'), go('»', pages - 1, 'Last page'));
    this.pager.hidden = pages === 1;
  }
}
