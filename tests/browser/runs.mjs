// Real runs with the real binary, each in a store of its own, and the page about each.
import {execFileSync, spawn} from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {fileURLToPath} from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const source = path.join(here, '..', '..');

export class Runs {
  constructor(reprise, work) {
    this.reprise = path.resolve(reprise);
    this.work = path.resolve(work);
  }

  fileOf(name) {
    return name === 'quickstart'
      ? path.join(source, 'examples', 'quickstart.yaml')
      : path.join(here, 'flows', `${name}.yaml`);
  }

  storeOf(name) {
    return `sqlite:${path.join(this.work, name, 'reprise.db')}`;
  }

  // Its standard output; a run that fails has exit code 1, which is no mistake here.
  call(name, ...words) {
    const options = {cwd: this.work, encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore']};
    try {
      return execFileSync(this.reprise, [...words, '--store', this.storeOf(name)], options);
    } catch (problem) {
      if (problem.status === 1) return problem.stdout;
      throw problem;
    }
  }

  begin(name) {
    fs.rmSync(path.join(this.work, name), {recursive: true, force: true});
    fs.mkdirSync(path.join(this.work, name), {recursive: true});
  }

  run(name) {
    this.begin(name);
    this.call(name, 'run', this.fileOf(name), '--progress', 'quiet');
    return this.page(name);
  }

  // Those that a page tells: of a place that is only reserved, nothing has begun.
  events(name) {
    const lines = this.call(name, 'events', '@last', '--format', 'json').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line)).filter((event) => event.type !== 'reserved');
  }

  // What `show --html` wrote, and the events it was made of.
  page(name) {
    const file = path.join(this.work, `${name}.html`);
    this.call(name, 'show', '@last', '--html', file);
    return {file, events: this.events(name), shown: JSON.parse(this.call(name, 'show', '@last', '--format', 'json'))};
  }

  start(name, ...words) {
    return spawn(this.reprise, [...words, '--store', this.storeOf(name), '--progress', 'quiet'], {
      cwd: this.work,
      stdio: 'ignore',
    });
  }

  // Looks until the run has such an event.
  async until(name, isThere) {
    for (;;) {
      try {
        if (this.events(name).some(isThere)) return;
      } catch (problem) {
        if (![4, 5].includes(problem.status)) throw problem; // there is no run yet
      }
      await sleep(50);
    }
  }

  // Fails, is tried again when the cause is gone, waits for a signal and is looked at meanwhile, and gets it.
  async retryAndSignal(name) {
    this.begin(name);
    this.call(
      name,
      'run',
      this.fileOf(name),
      '--set',
      `flag=${path.join(this.work, name, 'flag')}`,
      '--progress',
      'quiet',
    );
    fs.writeFileSync(path.join(this.work, name, 'flag'), '');
    const retry = this.start(name, 'retry', '@last');
    await this.until(name, (event) => event.type === 'completed' && event.step === 'print' && event.item === 2);
    const open = path.join(this.work, `${name}-open.html`);
    this.call(name, 'show', '@last', '--html', open);
    this.call(name, 'signal', '@last', 'collected');
    if (retry.exitCode === null) await new Promise((resolve) => retry.once('exit', resolve));
    return {...this.page(name), open};
  }

  // Killed in its second step, looked at, resumed, paused in its third, and resumed again.
  async killAndResume(name) {
    this.begin(name);
    const first = this.start(name, 'run', this.fileOf(name));
    await this.until(name, (event) => event.type === 'started' && event.step === 'copy');
    first.kill('SIGKILL');
    await new Promise((resolve) => first.once('exit', resolve));
    const open = path.join(this.work, `${name}-open.html`);
    this.call(name, 'show', '@last', '--html', open);
    await sleep(700);
    const second = this.start(name, 'resume', '@last');
    await this.until(name, (event) => event.type === 'started' && event.step === 'check');
    this.call(name, 'pause', '@last');
    await this.until(name, (event) => event.type === 'paused');
    await sleep(600);
    this.call(name, 'resume', '@last');
    if (second.exitCode === null) await new Promise((resolve) => second.once('exit', resolve));
    return {...this.page(name), open};
  }
}
