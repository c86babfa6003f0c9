/** A shop as a provider of a NestJS application, which closes it. */
import 'reflect-metadata';
import {
  Controller,
  Headers,
  Inject,
  Module,
  type OnApplicationShutdown,
  Param,
  Post,
  Res,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { open, type PurchaseOutcome, type Shop } from '@stockade-engine/stockade';
import type { Response } from 'express';
import { statusOf } from './status.js';

const SHOP = Symbol('shop');

@Controller('buy')
class BuyController {
  readonly #shop: Shop;

  constructor(@Inject(SHOP) shop: Shop) {
    this.#shop = shop;
  }

  @Post(':saleId')
  async buy(
    @Param('saleId') saleId: string,
    @Headers('x-buyer-id') buyerId = '',
    @Headers('idempotency-key') key = '',
    @Res({ passthrough: true }) response: Response,
  ): Promise<PurchaseOutcome> {
    const outcome = await this.#shop.purchase({ saleId, buyerId, key });
    response.status(statusOf(outcome));
    return outcome;
  }
}

async function openShop(): Promise<Shop> {
  const shop = await open({ redisUrl: process.env.REDIS_URL, databaseUrl: process.env.DATABASE_URL });
  const { sales } = await shop.sales.list();
  if (sales.length === 0) await shop.sales.create({ id: 'front-row', stock: 100 });
  return shop;
}

@Module({ controllers: [BuyController], providers: [{ provide: SHOP, useFactory: openShop }] })
class AppModule implements OnApplicationShutdown {
  readonly #shop: Shop;

  constructor(@Inject(SHOP) shop: Shop) {
    this.#shop = shop;
  }

  onApplicationShutdown(): Promise<void> {
    return this.#shop.close();
  }
}

const app = await NestFactory.create(AppModule, { logger: false });
app.enableShutdownHooks();
await app.listen(Number(process.env.PORT ?? 3000));
console.log('ready', app.getHttpServer().address());
