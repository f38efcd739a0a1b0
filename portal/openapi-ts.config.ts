import { defineConfig } from '@hey-api/openapi-ts'

// The client is generated from the contract and checked in. `make verify` proves that it is fresh.
export default defineConfig({
  input: '../sdk/contract/openapi.json',
  output: {
    path: process.env.GEN_OUT ?? 'src/api/generated',
    clean: true,
    postProcess: [{ command: 'node', args: ['openapi-ts.tidy.mjs', '{{path}}'] }],
  },
  plugins: [
    { name: '@hey-api/client-fetch', runtimeConfigPath: '@/api/runtime' },
    '@hey-api/typescript',
    { name: '@hey-api/sdk', responseStyle: 'data', auth: false },
  ],
  logs: { level: 'error', file: false },
})
