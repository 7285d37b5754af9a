// The steps in numbers, and all events.

const eventsPerPage = 100;

// ---- steps in numbers ----------------------------------------------------------------------------

function renderStatistics(model) {
  const rows = model.steps.map((step) => {
    const took = step.first !== null && step.last !== null ? Math.max(0, step.last - step.first) : 0;
    const items = step.has_items ? `${number(step.done)} of ${number(step.items)}` : '';
    return [
      make('span', {class: 'outside'}, step.name),
      badge(stateOfStep(step)),
      numeric(items),
      numeric(step.attempts),
      numeric(step.retries),
      numeric(step.rescued),
      numeric(step.failed),
      numeric(step.lost),
      numeric(step.retries > 0 ? span(step.waited) : ''),
      numeric(step.first === null ? '' : span(took)),
    ];
  });
  const sum = (member) => model.steps.reduce((total, step) => total + step[member], 0);
  const box = table(
    ['Step', 'State', 'Items done', 'Attempts', 'Retries', 'Made good', 'Failed', 'Lost', 'Waited', 'Duration'].map(
      (name, place) => (place < 2 ? name : numeric(name)),
    ),
    rows,
    {class: 'statistics'},
  );
  box.append(
    make(
      'tfoot',
      {},
      make(
        'tr',
        {},
        make('td', {}, 'all'),
        make('td', {}),
        make('td', {}),
        ...['attempts', 'retries', 'rescued', 'failed', 'lost'].map((member) =>
          make('td', {class: 'numeric'}, number(sum(member))),
        ),
        make('td', {class: 'numeric'}, span(sum('waited'))),
        make('td', {class: 'numeric'}, span(model.to - model.from)),
      ),
    ),
  );
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
    this.step = make(
      'select',
      {id: 'of-step'},
      options([
        ['', 'any step'],
        ['-1', 'the run itself'],
        ...this.model.steps.map((step) => [String(step.number), step.name]),
      ]),
    );
    this.type = make('select', {id: 'of-type'}, options([['', 'any type'], ...types.map((type) => [type, type])]));
    this.text = make('input', {
      id: 'with-text',
      type: 'search',
      placeholder: 'text, or fetch[57]',
      autocomplete: 'off',
      spellcheck: 'false',
    });
    this.count = make('span', {class: 'count', role: 'status'});
    this.rows = make('div', {class: 'scroll'});
    this.pager = make('div', {class: 'tools'});
    const field = (words, input) => make('label', {}, make('span', {}, words), input);
    byId('events-body').replaceChildren(
      make(
        'div',
        {class: 'filters'},
        field('Step', this.step),
        field('Type', this.type),
        field('Text', this.text),
        this.count,
        this.pager,
      ),
      this.rows,
    );
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
    const fits = (event) =>
      (this.step.value === '' || event.step === Number(this.step.value)) &&
      (this.type.value === '' || event.type === this.type.value) &&
      (wanted === '' ||
        `${this.placeOf(event)} ${event.type} ${this.model.wordsOf(event)}`.toLowerCase().includes(wanted));
    this.found = this.model.events.filter(fits);
    this.show(0);
  }

  show(page) {
    const pages = Math.max(1, Math.ceil(this.found.length / eventsPerPage));
    this.page = Math.min(pages - 1, Math.max(0, page));
    const rows = this.found
      .slice(this.page * eventsPerPage, (this.page + 1) * eventsPerPage)
      .map((event) => [
        numeric(event.index + 1),
        clock(event.at),
        make('span', {class: 'outside'}, this.placeOf(event)),
        make('span', {class: 'type', 'data-type': event.type}, event.type),
        make('span', {class: 'outside'}, this.model.wordsOf(event)),
      ]);
    this.rows.replaceChildren(
      table([numeric('No.'), 'Time', 'Work', 'Type', 'What happened'], rows, {class: 'events'}),
    );
    this.count.textContent =
      this.found.length === this.model.events.length
        ? counted(this.found.length, 'event')
        : `${number(this.found.length)} of ${counted(this.model.events.length, 'event')}`;
    const go = (words, to, label) => {
      const element = button(words, () => this.show(to), {class: 'quiet', 'aria-label': label});
      element.disabled = to === this.page || to < 0 || to >= pages;
      return element;
    };
    this.pager.replaceChildren(
      go('«', 0, 'First page'),
      go('‹', this.page - 1, 'Page before'),
      make('span', {}, `page ${number(this.page + 1)} of ${number(pages)}`),
      go('›', this.page + 1, 'Next page'),
      go('»', pages - 1, 'Last page'),
    );
    this.pager.hidden = pages === 1;
  }
}
