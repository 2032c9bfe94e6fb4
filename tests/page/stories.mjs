// What the page's stories share: one Chromium for a file, and pages whose every fault counts.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { eventually } from '../e2e/util.mjs';
import { story as e2eStory } from '../e2e/world.mjs';
import { openBrowser, openPage } from './browser.mjs';

let browser;
after(() => browser?.close());

// A story whose pages must have neither errors nor blocked content nor foreign requests, but for those
// that it provokes. Each has a database and a daemon of its own.
export function story(name, body, { faults = [] } = {}) {
  e2eStory(name, async (w) => {
    browser ??= await openBrowser();
    const pages = [];
    const open = async (daemon, options) => {
      const page = await openPage(browser, daemon, options);
      pages.push(page);
      return page;
    };
    try {
      await body(w, open);
      for (const page of pages) assert.deepEqual(page.faults.filter((fault) => !faults.some((known) => known.test(fault))), []);
    } finally {
      for (const page of pages) await page.context().close();
    }
  });
}

export const live = (page) => page.waitForSelector('#live[data-state="live"]');
export const text = (page, selector) => page.locator(selector).innerText();
export const ids = async (page) => (await page.locator('main [data-row] .id').allInnerTexts()).map((id) => id.trim());
export const shows = (page, what, check) => eventually(what, check, 30_000).catch(async (error) => {
  throw new Error(`${error.message}; the page says: ${(await page.locator('body').innerText()).slice(0, 2000)}`);
});
export const operation = (id) => `#/operation/${encodeURIComponent(id)}`;

// Fills the form that is open, and sends it.
export async function dialog(page, values, confirm) {
  await page.waitForSelector('dialog[open]');
  for (const [name, value] of Object.entries(values)) {
    if (name === 'verdict') await page.check(`dialog input[value="${value}"]`); else await page.fill(`dialog [name="${name}"]`, value);
  }
  if (confirm) await page.click(`dialog button[type="submit"]:has-text("${confirm}")`);
}
