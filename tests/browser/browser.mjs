// A real browser, and what is watched in every page: mistakes of scripts, and requests for anything but the page itself.
import {execFileSync} from 'node:child_process';
import {createRequire} from 'node:module';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const flags =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking ' +
  '--disable-component-update --disable-sync';

// `work` is where playwright-core was installed: the source tree stays as it is.
export async function launch(work) {
  const {chromium} = createRequire(path.join(path.resolve(work), 'package.json'))('playwright-core');
  const executablePath = execFileSync('sh', ['-c', 'command -v chromium'], {encoding: 'utf8'}).trim();
  return chromium.launch({executablePath, args: flags.split(' ')});
}

export async function open(browser, file, {scheme = 'light', width = 1280, height = 900} = {}) {
  const page = await browser.newPage({viewport: {width, height}, colorScheme: scheme, reducedMotion: 'reduce'});
  const seen = {mistakes: [], requests: []};
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) seen.mistakes.push(message.text());
  });
  page.on('pageerror', (problem) => seen.mistakes.push(String(problem)));
  page.on('dialog', (dialog) => {
    seen.mistakes.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  const address = pathToFileURL(file).href;
  page.on('request', (request) => {
    if (request.url() !== address) seen.requests.push(request.url());
  });
  await page.goto(address);
  return {page, seen};
}
