import { endpoints } from '#endpoints'
import { defineEventHandler } from 'h3'
import { createEntrance } from '#server/http/entrance'

const entrance = createEntrance(endpoints)

export default defineEventHandler((event) => entrance(event))
