import { setupWorker } from 'msw/browser'
import { handlers } from './handlers'

/** Starts the mock service in this tab. Only builds of mode `mock` import it. */
export async function startMock(): Promise<void> {
  await setupWorker(...handlers).start({
    quiet: true,
    // Other addresses are the portal's own files. An address of the API without a handler is an error.
    onUnhandledRequest(request, print) {
      if (new URL(request.url).pathname.startsWith('/v1/')) print.error()
    },
  })
}
