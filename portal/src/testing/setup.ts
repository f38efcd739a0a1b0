import '@testing-library/jest-dom/vitest'
import { cleanup, configure } from '@testing-library/react'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { reset } from '#mock/db'
import { server } from '#mock/server'
import { setCsrfToken, setSignedOutHandler } from '@/api'

// What a test waits for may take long where many tests share the processor.
configure({ asyncUtilTimeout: 10_000 })

// Every unit test talks to the same mock service as the development server; a call it does not know is a failure.
beforeAll(() => server.listen({ onUnhandledRequest: 'error' }))
afterEach(() => {
  cleanup()
  server.resetHandlers()
  reset()
  setCsrfToken(null)
  setSignedOutHandler(() => undefined)
})
afterAll(() => server.close())
