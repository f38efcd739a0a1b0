/// <reference types="vitest/config" />
import { createReadStream, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/**
 * Serves the mock API's service worker from the installed package, so that script and library have one version, and the
 * production build never contains it.
 */
function mockWorker(): Plugin {
  const file = createRequire(import.meta.url).resolve('msw/mockServiceWorker.js')
  return {
    name: 'quorate-mock-worker',
    configureServer(server) {
      server.middlewares.use('/mockServiceWorker.js', (_request, response) => {
        response.setHeader('content-type', 'text/javascript')
        createReadStream(file).pipe(response)
      })
    },
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'mockServiceWorker.js', source: readFileSync(file) })
    },
  }
}

const PACKED = /\.(js|css|svg)$/

/** Puts a `.br` and a `.gz` beside each file that they make smaller: the API sends them as they are. */
function packed(): Plugin {
  return {
    name: 'quorate-packed',
    // Files are packed once they are on the disk: until then names within them are exchanged.
    writeBundle({ dir }, bundle) {
      for (const name of Object.keys(bundle).filter((each) => PACKED.test(each))) {
        const file = join(String(dir), name)
        const content = readFileSync(file)
        if (content.length < 1_024) continue
        writeFileSync(`${file}.br`, brotliCompressSync(content))
        writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }))
      }
    },
  }
}

// Mode `mock` answers every call in the browser. Other modes call the API, which serves this build at `/`.
export default defineConfig(({ mode }) => ({
  base: '/',
  plugins: [react(), tailwindcss(), mode === 'mock' ? mockWorker() : packed()],
  resolve: { alias: { '@': here('./src'), '#mock': here('./mock') } },
  build: {
    outDir: mode === 'mock' ? 'dist-mock' : 'dist',
    target: 'es2022',
    chunkSizeWarningLimit: 700,
  },
  server: {
    // The guides of the documentation are files of the repository.
    fs: { allow: [here('..')] },
    host: '127.0.0.1',
    port: 5173,
    proxy: mode === 'mock' ? undefined : { '/v1': process.env.QUORATE_URL ?? 'http://127.0.0.1:8000' },
  },
  preview: { host: '127.0.0.1', port: 4173 },
  test: {
    environment: 'happy-dom',
    environmentOptions: { happyDOM: { url: 'http://localhost:3000' } },
    setupFiles: ['./src/testing/setup.ts'],
    include: ['src/**/*.test.{ts,tsx}', 'mock/**/*.test.ts'],
    testTimeout: 30_000,
    env: { DEBUG_PRINT_LIMIT: '0' },
    restoreMocks: true,
  },
}))
