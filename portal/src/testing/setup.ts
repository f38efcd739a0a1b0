import '@testing-library/jest-dom/vitest'
import { cleanup } from '@testing-library/react'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { reset } from '#mock/db'
import { server } from '#mock/server'
import { setCsrfToken, setSignedOutHandler } from '@/api'

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
