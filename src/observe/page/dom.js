// Making elements, and telling about them on hover and focus. Text from outside gets into the page as text nodes only.

function append(element, children) {
  for (const child of children.flat()) if (child !== null) element.append(child);
  return element;
}

// make('p', {class: 'hint', title: 'x'}, 'text', otherElement)
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return append(element, children);
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return append(element, children);
}

const byId = (id) => document.getElementById(id);

function badge(state, words = wordsOf(state)) {
  return make(
    'span',
    {class: 'badge', 'data-state': state},
    make('span', {class: 'glyph', 'aria-hidden': 'true'}, glyphOf(state)),
    words,
  );
}

function button(words, act, attributes = {}) {
  const element = make('button', {type: 'button', ...attributes}, words);
  element.addEventListener('click', act);
  return element;
}

// ---- what is told on hover and focus ------------------------------------------------------------

const tellers = new WeakMap();

// `teller` gets the element pointed at (this one, or one inside) and returns {title, state, lines}, with `place` if that is not this
// element; or null.
function tell(element, teller) {
  tellers.set(element, teller);
  return element;
}

function tipFor(target) {
  for (let element = target; element instanceof Element; element = element.parentElement) {
    const tip = tellers.has(element) ? tellers.get(element)(target) : null;
    if (tip) return {tip, place: tip.place || element};
  }
  return null;
}

const tipBox = {
  shownFor: null,

  show(target) {
    const found = tipFor(target);
    if (found === null) return this.hide();
    if (this.shownFor === found.place) return undefined;
    this.hide();
    this.shownFor = found.place;
    const box = byId('tip');
    box.dataset.state = found.tip.state;
    box.replaceChildren(
      make(
        'strong',
        {},
        make('span', {class: 'glyph', 'aria-hidden': 'true'}, glyphOf(found.tip.state)),
        found.tip.title,
      ),
    );
    append(
      box,
      found.tip.lines.map((line) => make('span', {class: 'line'}, line)),
    );
    box.showPopover();
    found.place.setAttribute('aria-describedby', 'tip');
    return this.follow();
  },

  follow() {
    if (this.shownFor === null) return;
    const box = byId('tip');
    const target = this.shownFor.getBoundingClientRect();
    const own = box.getBoundingClientRect();
    const left = Math.min(Math.max(8, target.left + target.width / 2 - own.width / 2), innerWidth - own.width - 8);
    const hasRoomBelow = target.bottom + own.height + 16 < innerHeight;
    const top = hasRoomBelow ? target.bottom + 8 : Math.max(8, target.top - own.height - 8);
    box.style.left = `${Math.max(8, left)}px`;
    box.style.top = `${top}px`;
  },

  hide() {
    if (this.shownFor === null) return;
    this.shownFor.removeAttribute('aria-describedby');
    this.shownFor = null;
    byId('tip').hidePopover();
  },
};

function listenForTips() {
  document.addEventListener('pointerover', (event) => tipBox.show(event.target));
  document.addEventListener('focusin', (event) => tipBox.show(event.target));
  document.addEventListener('focusout', () => tipBox.hide());
  document.addEventListener('scroll', () => tipBox.follow(), {capture: true, passive: true});
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') tipBox.hide();
  });
  document.documentElement.addEventListener('pointerleave', () => tipBox.hide());
}
