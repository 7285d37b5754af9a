// Pages of `reprise show --html` in a real browser: node pages_test.mjs REPRISE WORK_FOLDER [--picture FILE]
//
// With --picture it only makes the picture for the documents, of the quick start.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {after, before, describe, it} from 'node:test';

import {launch, open} from './browser.mjs';
import {Runs} from './runs.mjs';

const [reprise, work, option, pictureFile] = process.argv.slice(2);
const runs = new Runs(reprise, work);
const hostile = '</script><img src=x onerror="window.hacked=1"><!-- <script> ]]> &lt;';

const count = (events, type) => events.filter((event) => event.type === type).length;
const tipOf = (page) => page.locator('#tip').innerText();

// As many as the page draws, in segments of their own or as bars.
const drawn = (page) =>
  page.evaluate(() => {
    const segments = (kind) => document.querySelectorAll(`#timeline-body .segment[data-kind="${kind}"]`).length;
    const inBars = (member) =>
      [...document.querySelectorAll('.row.bars')].reduce((sum, row) => sum + Number(row.dataset[member]), 0);
    return {
      attempts: segments('attempt') + inBars('attempts'),
      waits: segments('wait') + inBars('waits'),
      pauses: segments('pause'),
      gone: segments('gone'),
    };
  });

async function expectDrawn(page, events) {
  assert.deepEqual(await drawn(page), {
    attempts: count(events, 'started'),
    waits: count(events, 'retrying'),
    pauses: count(events, 'paused'),
    gone: count(events, 'recovered'),
  });
  assert.equal(await page.locator('#events .count').innerText(), `${events.length.toLocaleString('en')} events`);
}

async function takePicture(file) {
  const {file: quickstart} = runs.run('quickstart');
  const browser = await launch(work);
  const {page} = await open(browser, quickstart, {width: 1180, height: 920});
  await page.locator('#step-3 .segment[data-kind="wait"]').focus();
  await page.screenshot({path: file});
  await browser.close();
}

function testPages() {
  let browser;
  const made = {};
  before(async () => {
    browser = await launch(work);
    for (const name of ['quickstart', 'failed', 'hostile', 'many']) made[name] = runs.run(name);
    made.killed = await runs.killAndResume('killed');
    made.retried = await runs.retryAndSignal('retried');
  });
  after(() => browser.close());

  // Opens a page, has it looked at, and holds it to what must be true of every page.
  const look = async (file, how, see) => {
    const {page, seen} = await open(browser, file, how);
    await see(page);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.deepEqual(seen, {mistakes: [], requests: []});
    await page.close();
  };

  for (const name of ['quickstart', 'failed', 'killed', 'retried', 'many', 'hostile']) {
    for (const scheme of ['light', 'dark']) {
      for (const width of [1280, 420]) {
        it(`${name}, ${scheme}, ${width} wide: all attempts, waits and pauses, nothing wider than the window`, () =>
          look(made[name].file, {scheme, width}, async (page) => {
            await expectDrawn(page, made[name].events);
            assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
            await page.screenshot({path: path.join(work, `${name}-${scheme}-${width}.png`)});
            await page.screenshot({path: path.join(work, `${name}-${scheme}-${width}-all.png`), fullPage: true});
          }));
      }
    }
  }

  it('has the numbers of reprise show', () =>
    look(made.failed.file, {}, async (page) => {
      const {shown} = made.failed;
      const rows = await page
        .locator('#statistics tbody tr')
        .evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
      assert.deepEqual(
        rows.map((row) => [row[0], row[3], row[4], row[5], row[6], row[7]]),
        shown.steps.map((step) =>
          [step.step, step.attempts, step.retries, step.rescued, step.failed, step.lost].map(String),
        ),
      );
      assert.match(await page.locator('.masthead').innerText(), /release[^]*failed: its attempts were used up/);
    }));

  it('counts what retries were good for', () =>
    look(made.many.file, {}, async (page) => {
      const tiles = await page.locator('.tiles').innerText();
      const retried = new Set(
        made.many.events.filter((event) => event.type === 'retrying').map((event) => `${event.step} ${event.item}`),
      );
      const done = new Set(
        made.many.events.filter((event) => event.type === 'completed').map((event) => `${event.step} ${event.item}`),
      );
      const rescued = [...retried].filter((one) => done.has(one)).length;
      assert.equal(rescued, 2000);
      assert.ok(tiles.includes(`${retried.size.toLocaleString('en')}\nwork with retries`), tiles);
      assert.ok(tiles.includes('2,000\nsucceeded after retry\n98 %'), tiles);
      assert.ok(tiles.includes('40\nfailed after all retries\n2 %'), tiles);
    }));

  it('tells the cause of a wait on hover', () =>
    look(made.quickstart.file, {}, async (page) => {
      const retrying = made.quickstart.events.find((event) => event.type === 'retrying' && event.step === 'download');
      await page.locator('#step-0 .segment[data-kind="wait"]').first().hover();
      const tip = await tipOf(page);
      for (const words of [
        'download waited',
        'before attempt 2',
        'drawn from 450ms to 750ms',
        'exit 1: connection reset by peer',
        'It is transient',
        'max_attempts 3 leaves 2',
      ]) {
        assert.ok(tip.includes(words), `no "${words}" in ${tip}`);
      }
      const ms = Number(Number(retrying.delay_ms).toPrecision(3));
      assert.ok(tip.includes(ms < 1000 ? `The wait is ${ms}ms` : `The wait is ${ms / 1000}s`), tip);
    }));

  it('tells the cause of a failure on keyboard focus, and Enter opens its attempts', () =>
    look(made.quickstart.file, {}, async (page) => {
      for (let presses = 0; presses < 20; presses += 1) {
        await page.keyboard.press('Tab');
        if (await page.evaluate(() => document.activeElement.matches('#timeline-body .segment'))) break;
      }
      assert.match(await tipOf(page), /download, attempt 1 of 3 failed after [^]*connection reset by peer/);
      await page.keyboard.press('ArrowRight');
      assert.match(await tipOf(page), /download waited/);
      await page.keyboard.press('ArrowDown');
      assert.match(await tipOf(page), /look_up/);
      await page.keyboard.press('Home');
      assert.match(await tipOf(page), /look_up, attempt 1 of 3 failed[^]*timed out after 1s/);
      await page.keyboard.press('Escape');
      assert.equal(await page.locator('#tip').isVisible(), false);
      await page.keyboard.press('Enter');
      assert.match(await page.locator('#story').innerText(), /look_up[^]*TimeoutError: timed out after 1s[^]*found/);
      assert.equal(await page.locator('#story tbody tr').count(), 2);
      await page.keyboard.press('Escape');
      assert.equal(await page.locator('#story').isVisible(), false);
    }));

  it('tells when the engine was gone and when the run was paused', () =>
    look(made.killed.file, {}, async (page) => {
      await page.locator('#timeline-body .segment[data-kind="gone"]').hover();
      assert.match(await tipOf(page), /Nobody worked for [^]*engine died/);
      await page.locator('#timeline-body .segment[data-kind="pause"]').focus();
      assert.match(await tipOf(page), /The run was paused for/);
      await page.locator('#timeline-body .segment[data-state="lost"][data-kind="attempt"]').hover();
      assert.match(await tipOf(page), /copy, attempt 1 of 4 was lost[^]*The engine died during this attempt/);
      assert.match(await page.locator('.tiles').innerText(), /1\nrecoveries/);
    }));

  it('shows a run that is not over, and that nobody works on it', () =>
    look(made.killed.open, {}, async (page) => {
      assert.match(await page.locator('#head').innerText(), /migration[^]*running[^]*Nobody is working on this run/);
      assert.equal(await page.locator('#timeline-body .segment[data-kind="attempt"][data-state="running"]').count(), 1);
    }));

  it('shows a run that is under way, and when it was over in between', async () => {
    await look(made.retried.open, {}, async (page) => {
      assert.match(await page.locator('#head').innerText(), /This run was not over when the page was made/);
      assert.match(await page.locator('#step-2').innerText(), /collect[^]*waiting/);
      await page.locator('#timeline-body .segment[data-kind="over"]').hover();
      assert.match(await tipOf(page), /The run was over for [^]*somebody asked to try again/);
    });
    await look(made.retried.file, {}, async (page) => {
      await page.locator('#step-2 .segment[data-kind="hold"]').hover();
      assert.match(await tipOf(page), /collect waited/);
    });
  });

  it('walks through a grid of ten thousand by keyboard, and opens an item', () =>
    look(made.many.file, {}, async (page) => {
      assert.equal(await page.locator('.cell').count(), 10000);
      const states = {};
      for (const event of made.many.events.filter((one) => one.step === 'scale')) {
        const state = states[event.item] || {failed: false};
        if (event.type === 'failed') states[event.item] = {failed: true, name: 'failed'};
        if (event.type === 'completed') states[event.item] = {...state, name: state.failed ? 'rescued' : 'succeeded'};
      }
      const cells = await page.locator('.cell').evaluateAll((all) => all.map((cell) => cell.dataset.state));
      assert.deepEqual(
        cells,
        Object.keys(states).map((item) => states[item].name),
      );
      await page.locator('.cell').first().focus();
      for (let presses = 0; presses < 3; presses += 1) await page.keyboard.press('ArrowRight');
      assert.match(
        await tipOf(page),
        /scale\[3\]: done after a failure[^]*2 attempts, 1 failure, 1 wait[^]*picture 3: connection reset/,
      );
      await page.keyboard.press('Enter');
      assert.match(
        await page.locator('#story').innerText(),
        /scale\[3\][^]*connection reset by peer[^]*drawn from 0s to 50ms/,
      );
      await page.keyboard.press('Escape');
      await page.keyboard.press('End');
      assert.match(await tipOf(page), /scale\[9999\]: failed/);
      await page.keyboard.press('ArrowUp');
      assert.equal(await page.evaluate(() => document.activeElement.className), 'cell');
      assert.notEqual(await page.evaluate(() => document.activeElement.dataset.item), '9999');
    }));

  it('tells a state by a letter too, and picks one state', () =>
    look(made.many.file, {}, async (page) => {
      const letters = await page.evaluate(() =>
        ['succeeded', 'rescued', 'failed'].map(
          (state) => getComputedStyle(document.querySelector(`.cell[data-state="${state}"]`), '::before').content,
        ),
      );
      assert.equal(new Set(letters).size, 3);
      await page.locator('.chip', {hasText: 'failed40'}).click();
      assert.equal(await page.locator('.cell:visible').count(), 40);
    }));

  it('lists what failed, worst first, with its attempts', () =>
    look(made.many.file, {}, async (page) => {
      assert.match(
        await page.locator('#failures .hint').innerText(),
        /2,040 pieces of work failed at least once: 40 for good, 2,000 made good/,
      );
      assert.equal(await page.locator('.trouble').count(), 20);
      assert.match(
        await page.locator('.trouble').first().innerText(),
        /scale\[249\][^]*picture 249 is damaged[^]*attempt 3 of max_attempts 3/,
      );
      await page.locator('#failures .more').click();
      assert.equal(await page.locator('.trouble').count(), 200);
      assert.match(await page.locator('#failures').innerText(), /… and 1,840 more/);
      await page.locator('.trouble summary').nth(199).click();
      assert.match(
        await page.locator('.trouble').nth(199).innerText(),
        /done after a failure[^]*(connection reset|503)/,
      );
    }));

  it('filters events by step, type and text', () =>
    look(made.many.file, {}, async (page) => {
      const {events} = made.many;
      const expectCount = (wanted) =>
        page.locator('#events .count', {hasText: `${wanted.toLocaleString('en')} of`}).waitFor();
      await page.locator('#of-step').selectOption({label: 'scale'});
      await expectCount(events.filter((event) => event.step === 'scale').length);
      await page.locator('#of-type').selectOption('failed');
      await expectCount(count(events, 'failed'));
      await page.locator('#with-text').fill('is DAMAGED');
      await expectCount(
        events.filter((event) => event.type === 'failed' && event.error.message.includes('is damaged')).length,
      );
      await page.locator('#with-text').fill('scale[9999]');
      await expectCount(3);
      assert.equal(await page.locator('#events tbody tr').count(), 3);
      await page.locator('#with-text').fill('');
      await expectCount(count(events, 'failed'));
      await page.getByLabel('Next page').click();
      assert.match(await page.locator('#events .tools').innerText(), /page 2 of/);
    }));

  it('shows what programs wrote as text and nothing else', () =>
    look(made.hostile.file, {}, async (page) => {
      const {events} = made.hostile;
      assert.ok(events.some((event) => event.type === 'failed' && event.error.message.includes(hostile)));
      assert.ok((await page.locator('h1').innerText()).startsWith("</script><script>window.hacked = 'name'</script>"));
      assert.ok((await page.title()).startsWith('</script>'));
      for (const place of ['#failures', '#events'])
        assert.ok((await page.locator(place).innerText()).includes(hostile), place);
      assert.ok((await page.locator('#events').innerText()).includes('<b onmouseover=window.hacked=2>bold</b>'));
      for (const words of ['{{data}} {{script}}', '</script ><script >window.hacked=6</script ><!-- <script'])
        assert.ok((await page.locator('#events').innerText()).includes(words), words);
      for (const segment of await page.locator('#timeline-body .segment').all()) await segment.hover();
      await page.locator('#step-0 .segment').first().focus();
      assert.ok((await tipOf(page)).includes(hostile));
      assert.equal(await page.evaluate(() => document.querySelectorAll('img, b[onmouseover], svg[onload]').length), 0);
      assert.equal(await page.evaluate(() => document.scripts.length), 2);
    }));

  it('has its own switch for light and dark, and prints on light paper', () =>
    look(made.quickstart.file, {scheme: 'dark'}, async (page) => {
      const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const dark = await paper();
      await page.locator('#theme').click();
      const light = await paper();
      assert.notEqual(dark, light);
      await page.locator('#theme').click();
      assert.equal(await paper(), dark);
      await page.emulateMedia({media: 'print'});
      assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), 'light');
      const printed = await page.pdf();
      assert.equal(printed.subarray(0, 5).toString(), '%PDF-');
    }));

  it('zooms, and its graph leads to the timeline', () =>
    look(made.quickstart.file, {}, async (page) => {
      const width = () => page.locator('#step-0 .track').evaluate((track) => track.clientWidth);
      const before = await width();
      await page.getByLabel('Zoom in').click();
      assert.ok((await width()) > 1.8 * before);
      await page.getByLabel('Show all of it').click();
      assert.equal(await width(), before);
      assert.equal(await page.locator('#graph-body .node').count(), made.quickstart.shown.steps.length);
      await page.locator('#graph-body .node').nth(2).click();
      assert.ok((await page.evaluate(() => location.hash)) === '#step-2');
    }));

  it('is of moderate size for ten thousand items', () => {
    assert.ok(fs.statSync(made.many.file).size < 6_000_000);
  });
}

if (option === '--picture') await takePicture(pictureFile);
else describe('pages', testPages);
