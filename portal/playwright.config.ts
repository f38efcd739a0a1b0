import { defineConfig, devices } from '@playwright/test'

const MOCK_PORT = Number(process.env.PORTAL_MOCK_PORT ?? 4173)
const MOCK_URL = `http://127.0.0.1:${MOCK_PORT}`
// `quorate-local run` sets QUORATE_API_URL.
const stack = process.env.QUORATE_URL ?? process.env.QUORATE_API_URL

/**
 * `mock`: the mock build in a browser, without a service. `stack`: a journey through a running stack, whose address is
 * QUORATE_URL. Both use the system's Chromium (CHROMIUM, else /usr/bin/chromium).
 */
export default defineConfig({
  testDir: 'e2e',
  // Cleared at each start; the other project may be running.
  outputDir: `test-results/${stack ? 'stack' : 'mock'}`,
  forbidOnly: Boolean(process.env.CI),
  fullyParallel: true,
  workers: 2,
  retries: 0,
  timeout: 60_000,
  expect: { timeout: 10_000 },
  reporter: [['list']],
  use: {
    ...devices['Desktop Chrome'],
    channel: undefined,
    viewport: { width: 1280, height: 900 },
    // Traces double the time on two cores. `--trace on` records them on demand.
    trace: 'off',
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-quic',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
  projects: [
    { name: 'mock', testMatch: 'mock/**/*.spec.ts', use: { baseURL: MOCK_URL } },
    // Its figures need a quiet machine: `make pages`.
    { name: 'speed', testMatch: 'speed/**/*.spec.ts', timeout: 300_000, use: { baseURL: stack } },
    { name: 'stack', testMatch: 'stack/**/*.spec.ts', timeout: 120_000, use: { baseURL: stack } },
  ],
  webServer: stack
    ? undefined
    : {
        command: `npm run build:mock && npx vite preview --mode mock --outDir dist-mock --port ${MOCK_PORT} --strictPort`,
        url: MOCK_URL,
        timeout: 60_000,
        reuseExistingServer: false,
      },
})
