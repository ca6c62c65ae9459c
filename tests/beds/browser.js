// Runs steps in pages with Debian's Chromium: a line of JSON on stdin has the steps, one on stdout the results.
// Each step is [verb, argument]: open URL, type TEXT (into what has the focus), press KEY, click SELECTOR,
// viewport WIDTH HEIGHT, theme light|dark, evaluate EXPRESSION (its value is a result), audit "" (axe's serious violations).
"use strict";
const puppeteer = require("puppeteer-core");
const axe = require.resolve("axe-core/axe.min.js");

const verbs = {
  open: (page, url) => page.goto(url),
  type: (page, text) => page.keyboard.type(text),
  press: (page, key) => page.keyboard.press(key),
  click: (page, selector) => page.click(selector),
  viewport: (page, size) => page.setViewport({ width: +size.split(" ")[0], height: +size.split(" ")[1] }),
  theme: (page, value) => page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]),
  evaluate: (page, expression) => page.evaluate(expression),
  audit: async (page) => {
    await page.addScriptTag({ path: axe });
    const { violations } = await page.evaluate(() => window.axe.run());
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`);
  },
};

// Opens a page of its own for the steps of one test.
async function run(browser, steps) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const complaints = [];
  await page.setBypassCSP(steps.some(([verb]) => verb === "audit")); // axe is a script of its own
  await page.setViewport({ width: 1400, height: 900 });
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!/^(file|data):/.test(request.url())) {
      complaints.push(`request: ${request.url()}`);
    }
  });
  const results = [];
  for (const [verb, argument] of steps) {
    const value = await verbs[verb](page, argument);
    if (verb === "evaluate" || verb === "audit") {
      results.push(value ?? null);
    }
  }
  await context.close();
  return { results, complaints };
}

(async () => {
  const args = ["--no-sandbox", "--disable-gpu"]; // root has no sandbox
  const browser = await puppeteer.launch({ executablePath: process.argv[2], args });
  for await (const line of require("readline").createInterface({ input: process.stdin })) {
    const answer = await run(browser, JSON.parse(line)).catch((error) => ({ error: error.stack }));
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  await browser.close();
})();
