export * from './billing'
export * from './groups'
export * from './organization'
export * from './people'
