// The items of a step that works through a list: one cell each, a state by colour and letter, and their story on demand.

const cellsMax = 10000; // at once; of longer lists a part is shown

class Items {
  constructor(model, openStory) {
    this.model = model;
    this.openStory = openStory;
  }

  render() {
    const steps = this.model.steps.filter((step) => step.has_items && (step.works.size > 0 || step.items > 1));
    byId('items').hidden = steps.length === 0;
    byId('items-link').hidden = steps.length === 0;
    byId('items-body').replaceChildren(...steps.map((step) => this.gridOf(step)));
  }

  gridOf(step) {
    const count = Math.max(
      step.items,
      [...step.works.keys()].reduce((most, item) => Math.max(most, item + 1), 0),
    );
    const chips = make('div', {class: 'chips', role: 'group', 'aria-label': `States of ${step.name}`});
    const pager = make('div', {class: 'tools'});
    const grid = make('div', {class: 'cells', role: 'listbox', 'aria-label': `Items of ${step.name}`});
    if (count > 600) grid.classList.add('dense');
    this.addChips(step, count, chips, grid);
    const show = (first) => {
      this.fill(grid, step, first, Math.min(count, first + cellsMax));
      if (count <= cellsMax) return;
      pager.replaceChildren(
        button('‹', () => show(Math.max(0, first - cellsMax)), {'aria-label': 'Earlier items', class: 'quiet'}),
        make('span', {}, `${number(first)} to ${number(Math.min(count, first + cellsMax) - 1)} of ${number(count)}`),
        button('›', () => show(first + cellsMax < count ? first + cellsMax : first), {
          'aria-label': 'Later items',
          class: 'quiet',
        }),
      );
    };
    show(0);
    this.listen(grid, step);
    return make(
      'article',
      {class: 'items', id: `items-${step.number}`},
      make('div', {class: 'title'}, make('h3', {}, step.name, ' ', make('small', {}, counted(count, 'item'))), pager),
      chips,
      grid,
    );
  }

  addChips(step, count, chips, grid) {
    const counts = new Map();
    for (const work of step.works.values())
      counts.set(work.state, (counts.get(work.state) || 0) + 1);
    const untouched = count - step.works.size + (counts.get('untouched') || 0);
    if (untouched > 0) counts.set('untouched', untouched);
    for (const state of Object.keys(looks)) {
      if (!counts.has(state)) continue;
      const chip = button(
        [badge(state), make('b', {}, number(counts.get(state)))],
        () => {
          const isOn = chip.getAttribute('aria-pressed') === 'true';
          for (const other of chips.children) other.setAttribute('aria-pressed', 'false');
          chip.setAttribute('aria-pressed', String(!isOn));
          if (isOn) delete grid.dataset.only;
          else grid.dataset.only = state;
        },
        {class: 'chip', 'aria-pressed': 'false'},
      );
      chips.append(chip);
    }
  }

  fill(grid, step, from, to) {
    const cells = document.createDocumentFragment();
    for (let item = from; item < to; item += 1) {
      const work = step.works.get(item);
      const cell = document.createElement('i');
      cell.className = 'cell';
      cell.dataset.state = work ? work.state : 'untouched';
      cell.dataset.item = item;
      cell.setAttribute('role', 'option');
      cells.append(cell);
    }
    grid.replaceChildren(cells);
    if (grid.firstChild) grid.firstChild.tabIndex = 0;
  }

  workOf(step, cell) {
    return step.works.get(Number(cell.dataset.item));
  }

  listen(grid, step) {
    const untouched = step.kept_out > 0 ? 'skipped: circuit open' : 'not begun';
    tell(grid, (target) => {
      if (!target.classList.contains('cell')) return null;
      const work = this.workOf(step, target);
      const tip = work
        ? this.model.tipOfWork(work)
        : {title: `${step.name}[${target.dataset.item}]: ${untouched}`, state: 'untouched', lines: []};
      target.setAttribute('aria-label', tip.title); // ten thousand labels at once would only cost time
      return {...tip, place: target};
    });
    const open = (cell) => {
      if (this.workOf(step, cell)) this.openStory(this.workOf(step, cell));
    };
    grid.addEventListener('click', (event) => {
      if (event.target.classList.contains('cell')) open(event.target);
    });
    grid.addEventListener('keydown', (event) => {
      if (!event.target.classList.contains('cell')) return;
      if (event.key === 'Enter' || event.key === ' ') {
        event.preventDefault();
        open(event.target);
      } else {
        this.walk(grid, event);
      }
    });
  }

  walk(grid, event) {
    const cells = grid.dataset.only
      ? [...grid.querySelectorAll(`[data-state="${grid.dataset.only}"]`)]
      : [...grid.children];
    const columns = getComputedStyle(grid).gridTemplateColumns.split(' ').length;
    const at = cells.indexOf(event.target);
    const to = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at + columns,
      ArrowUp: at - columns,
      Home: 0,
      End: cells.length - 1,
      PageDown: Math.min(cells.length - 1, at + 10 * columns),
      PageUp: Math.max(0, at - 10 * columns),
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to < 0 || to >= cells.length) return;
    event.target.tabIndex = -1;
    cells[to].tabIndex = 0;
    cells[to].focus();
  }
}
